"""Files that are there whole or not at all: written beside their place, then renamed."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TEMPORARY = ".tmp-"


def temporary_beside(path: Path) -> Path:
    return path.with_name(f"{TEMPORARY}{os.getpid()}-{uuid.uuid4().hex[:8]}")


def check_writable(folder: Path) -> None:
    """Raises OSError, with the folder's name, where no file could be made in it later."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        error.filename = str(folder)
        raise


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file, then rename it over `path`."""
    temporary = temporary_beside(path)
    try:
        with naming(path):
            write(temporary)
            _flush(temporary)
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """An error of the system names `path`: a full disk names none, and a temporary says little."""
    try:
        yield
    except OSError as error:
        if error.filename is None or TEMPORARY in str(error.filename):
            error.filename, error.filename2 = str(path), None
        raise


def write_text(path: Path, text: str) -> None:
    write_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def write_json_once(path: Path, value: Any) -> None:
    """The first of several processes writes it, and the others leave that one as it is."""
    mine = path.with_name(f"{temporary_beside(path).name}.json")
    write_json(mine, value)
    try:
        os.link(mine, path)  # unlike a rename, never over a file
    except FileExistsError:
        pass
    finally:
        mine.unlink()


def write_folder(path: Path, fill: Callable[[Path], None]) -> None:
    """Let `fill` fill a temporary folder, then rename it to `path`, which must not exist."""
    temporary = temporary_beside(path)
    try:
        with naming(path):
            temporary.mkdir()
            fill(temporary)
            for file in temporary.iterdir():
                _flush(file)
            os.rename(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Renamed away at once and deleted afterwards, so that no reader sees half a folder."""
    if path.exists():
        aside = temporary_beside(path)
        os.rename(path, aside)
        shutil.rmtree(aside, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Delete temporaries that a killed process left in `folder`."""
    for left in folder.glob(f"{TEMPORARY}*"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock file `path`; a process that dies lets go of it. `on_wait` is called once if
    another process holds it. The file stays: removing it would let two processes in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if on_wait is not None:
                on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
