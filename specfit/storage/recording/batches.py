"""A recording that is being made: its finished batches, each a small recording of its own.

recordings/.<recording_id>.parts/<first row>/    one batch of requests, or the calibration questions

A batch appears whole, by rename, and is read back with its digests checked. When the recording
itself is there, whole, its parts go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from specfit.base.types import SpecfitError
from specfit.storage import atomic
from specfit.storage.identity import Identity
from specfit.storage.recording.files import Recording, read_recording, write_recording


class RecordingParts:
    """Work on it inside `locked()`: a second process waits there for the first to end or to die."""

    def __init__(self, folder: Path, who: Identity) -> None:
        """`folder` is where the whole recording will be."""
        self._who = who
        self._lock = folder.with_name(f".{folder.name}.lock")
        self._parts = folder.with_name(f".{folder.name}.parts")

    @contextmanager
    def locked(self, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
        with atomic.locked(self._lock, on_wait):
            yield

    def kept(self) -> list[Recording]:
        """Batches that an earlier process finished; one that is damaged or foreign is dropped."""
        found: list[Recording] = []
        if not self._parts.is_dir():
            return found
        atomic.sweep(self._parts)
        for path in sorted(self._parts.iterdir()):
            part = self._read(path)
            if part is None:
                atomic.remove_folder(path)
            else:
                found.append(part)
        return found

    def _read(self, path: Path) -> Recording | None:
        try:
            part = read_recording(path)
        except SpecfitError:
            return None
        return part if part.identity == self._who else None

    def keep(self, name: str, part: Recording) -> None:
        write_recording(self._parts / name, part)

    def drop(self) -> None:
        atomic.remove_folder(self._parts)
