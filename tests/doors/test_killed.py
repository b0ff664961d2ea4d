"""kill -9 at any moment, or two processes at once: the rows are those of one undisturbed run."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

import pytest

from specfit.storage.manifest import read_manifest
from tests.fakes import killing
from tests.fakes.tiny_model import Runnable

ROOT = Path(__file__).resolve().parents[2]
ROWS = ("cycles.parquet", "requests.parquet")
LONGEST = 0.4  # seconds of work before all kills together; the whole run takes twice as long


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in ROWS}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded") / "scripted"
    killing.record(folder)
    return folder


@pytest.fixture(scope="module")
def undisturbed(recording: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return bytes_of(killing.run(recording, tmp_path_factory.mktemp("undisturbed")).folder)


@pytest.fixture(scope="module")
def processes() -> Iterator[ForkServerContext]:
    """Children of a process that has imported everything already."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.fakes.killing"])
    yield context
    forkserver._forkserver._stop()  # type: ignore[attr-defined]  # else later tests share its pipes


def start(
    context: ForkServerContext, recording: Path, results: Path
) -> tuple[ForkServerProcess, Connection]:
    hears, tells = context.Pipe(duplex=False)
    process = context.Process(target=killing.run, args=(recording, results, tells))
    process.start()
    tells.close()
    return process, hears


@pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_at_random_moments(
    processes: ForkServerContext,
    recording: Path,
    undisturbed: dict[str, bytes],
    tmp_path: Path,
    kills: int,
) -> None:
    moments, killed = random.Random(kills), 0
    for _ in range(20 * kills):
        process, hears = start(processes, recording, tmp_path)
        assert hears.poll(60) and hears.recv(), "the work begins"
        time.sleep(moments.uniform(0.0, LONGEST / kills))
        process.kill()
        process.join(60)
        killed += process.exitcode == -signal.SIGKILL
        if killed == kills:
            break
    folder = killing.run(recording, tmp_path).folder
    assert killed == kills, "it ended before it could be killed"
    assert bytes_of(folder) == undisturbed
    assert not list(tmp_path.rglob(".tmp-*")), "what the dead left behind is swept"
    manifest = read_manifest(folder)
    assert manifest is not None and 1 <= len(manifest.provenance) <= kills + 1


def test_two_at_once_are_one_run(
    processes: ForkServerContext, recording: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    both = [start(processes, recording, tmp_path) for _ in range(2)]
    for process, hears in both:
        assert hears.poll(60) and hears.recv()
        process.join(60)
        assert process.exitcode == 0
    (folder,) = [path for path in (tmp_path / "runs").iterdir() if path.is_dir()]
    assert bytes_of(folder) == undisturbed
    assert not list(tmp_path.rglob(".tmp-*"))
    manifest = read_manifest(folder)
    assert manifest is not None and len(manifest.provenance) == 1, "one of them did the work"


@pytest.mark.slow
def test_the_command_killed_at_ten_random_moments(runnable: Runnable, tmp_path: Path) -> None:
    """While it imports, calibrates, decodes or writes; a run that ends before is begun anew."""
    small = ("selector=specfit", "limit=6", "max_new_tokens=24", "cache_slots=4")
    command = [sys.executable, "-m", "specfit.run", *runnable.overrides, *small]
    command += ["calibration.slots=4"]

    def begin(results: Path) -> subprocess.Popen[bytes]:
        where = f"results_dir={results}"
        return subprocess.Popen([*command, where], cwd=ROOT, stdout=subprocess.DEVNULL)

    began = time.monotonic()
    assert begin(tmp_path / "undisturbed").wait(600) == 0
    took = time.monotonic() - began
    (folder,) = (tmp_path / "undisturbed" / "runs").glob("[!.]*")
    undisturbed, moments, kills, runs = bytes_of(folder), random.Random(0), 0, 0
    while kills < 10:
        runs += 1
        ended = None
        while ended is None:
            process = begin(tmp_path / f"{runs}")
            try:
                ended = process.wait(moments.uniform(0.2, 1.0) * took if kills < 10 else 600)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(60)
                kills += 1
        assert ended == 0
        took *= 0.8  # the machine may have been slower when it was taken
        (folder,) = (tmp_path / f"{runs}" / "runs").glob("[!.]*")
        assert bytes_of(folder) == undisturbed
