"""Sweeps on Hydra's launchers: the same rows as one process after the other.

joblib and submitit run here; Slurm through stand-ins for its two commands; Ray where installed.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from specfit.storage.rows import load_run
from specfit.workflows.hydra_workers import LAUNCHERS, is_installed
from tests.fakes.tiny_model import Command, JobResult, Runnable

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("selector=ar_cache", "limit=2", "max_new_tokens=4")
ROWS = ("cycles.parquet", "requests.parquet", "run.yaml")


def needs(launcher: str) -> None:
    module, extra = LAUNCHERS[launcher]
    if not is_installed(module):
        pytest.skip(f"hydra/launcher={launcher} is not installed: the extra {extra} has it")


def folders(results: Path) -> list[Path]:
    return sorted(f for f in (results / "runs").iterdir() if f.is_dir())


def kept(results: Path) -> dict[str, dict[str, bytes]]:
    """Run id -> the bytes of its rows; paths of the results folder in run.yaml left out."""
    return {
        folder.name: {
            name: (folder / name).read_bytes().replace(str(results).encode(), b"") for name in ROWS
        }
        for folder in folders(results)
    }


@pytest.fixture
def sweep(command: Command, runnable: Runnable, tmp_path: Path):  # type: ignore[no-untyped-def]
    """A sweep below tmp_path/<results> in this process; its jobs run where the launcher says."""

    def run(results: str, *overrides: str) -> tuple[JobResult, Path]:
        where = tmp_path / results
        ended = command("-m", *runnable.overrides, f"results_dir={where}", *overrides)
        return ended, where

    return run


@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_jobs_of_other_processes_leave_the_rows_of_serial_ones(sweep, launcher: str) -> None:  # type: ignore[no-untyped-def]
    """One job is bad and one comes twice: the others finish, the pair leaves one run."""
    needs(launcher)
    jobs = "cache_slots=2,99,4,2"
    alone, serial = sweep("serial", *SMALL, jobs)
    spread, parallel = sweep("parallel", *SMALL, f"hydra/launcher={launcher}", jobs)
    assert (alone.code, spread.code) == (2, 2)
    assert alone.sentence == "cache_slots is 99, but a layer has 16 experts; use all"
    assert spread.sentence == alone.sentence, "heard once, at home"
    assert kept(parallel) == kept(serial)
    assert [load_run(f).info.threads for f in folders(parallel)] == [1, 1]
    assert not list(parallel.rglob(".tmp-*"))


def test_the_same_sweep_again_repeats_nothing(sweep) -> None:  # type: ignore[no-untyped-def]
    needs("joblib")
    jobs = (*SMALL, "cache_slots=2,4")
    sweep("results", *jobs)
    _, results = sweep("results", "hydra/launcher=joblib", *jobs)
    folder = folders(results)[0]
    assert (folder / "manifest.json").read_text().count('"argv"') == 1, "no second process"


@pytest.mark.slow
def test_by_request_only_a_recording_splits(
    runnable: Runnable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers, a shard each; merged they are what one process records, low bits of a float
    apart: these depend on who shares a batch."""
    from hydra.core.global_hydra import GlobalHydra

    from specfit.workflows.hydra_cli import hydra_command
    from specfit.workflows.recording.record import record

    needs("joblib")

    def go(results: str, *overrides: str) -> list[Path]:
        where, sizes = tmp_path / results, ("limit=4", "max_new_tokens=60", "cache_slots=4")
        arguments = [*runnable.overrides, f"results_dir={where}", *sizes, *overrides]
        GlobalHydra.instance().clear()
        monkeypatch.setattr(sys, "argv", ["specfit.record", *arguments])
        assert hydra_command(record) == 0
        return [f for f in (where / "recordings").iterdir() if f.is_dir()]

    shards = go("split", "-m", "hydra/launcher=joblib", "record.shard=0/2,1/2")
    names = ",".join(folder.name for folder in shards)
    (whole,) = go("whole")
    merged = {f.name: f for f in go("split", f"record.merge=[{names}]")}[whole.name]
    for name in ("prompts.parquet", "calibration.parquet"):
        assert (merged / name).read_bytes() == (whole / name).read_bytes()
    ours, theirs = (pq.read_table(folder / "pools.parquet") for folder in (merged, whole))
    column = ours.column_names.index("path_probs")
    assert ours.remove_column(column).equals(theirs.remove_column(column))
    probs = zip(ours["path_probs"].to_pylist(), theirs["path_probs"].to_pylist(), strict=True)
    assert max(abs(a - b) for one, other in probs for a, b in zip(one, other, strict=True)) <= 2


# -- Slurm, with stand-ins for its commands --------------------------------------------------------

# The script names its array and calls srun; each job gets the variables that Slurm would set.
SBATCH = """#!/bin/sh
last=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\).*/\\1/p' "$1")
for i in $(seq 0 "$last"); do
    SLURM_JOB_ID=7$i SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=$i SLURM_JOB_NUM_NODES=1 \\
    SLURM_NTASKS=1 SLURM_JOB_NODELIST=here SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_PROCID=0 \\
        sh "$1" >/dev/null 2>&1 &
done
echo "Submitted batch job 7"
"""
SRUN = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do
    case "$1" in --output|--error) shift 2 ;; *) shift ;; esac
done
exec "$@"
"""
SACCT = """#!/bin/sh
echo 'JobID|State|NodeList'
for i in 0 1; do echo "7_$i|RUNNING|here"; done
"""


@pytest.mark.slow
def test_slurm_gets_a_script_that_runs_the_jobs(
    sweep,  # type: ignore[no-untyped-def]
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needs("submitit_slurm")
    commands = tmp_path / "commands"
    commands.mkdir()
    for name, text in (("sbatch", SBATCH), ("srun", SRUN), ("sacct", SACCT)):
        (commands / name).write_text(text)
        (commands / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    jobs = (*SMALL, "cache_slots=2,4")
    _, serial = sweep("serial", *jobs)
    chosen = ("hydra/launcher=submitit_slurm", "hydra.launcher.gpus_per_node=1")
    ended, parallel = sweep("slurm", *chosen, *jobs)
    assert (ended.code, ended.err) == (0, "")
    assert kept(parallel) == kept(serial)
    (script,) = (parallel / "sweeps" / "submitit").rglob("*_submission.sh")
    asked = script.read_text()
    assert "#SBATCH --gpus-per-node=1" in asked and "#SBATCH --cpus-per-task=1" in asked
    assert "#SBATCH --time=1440" in asked and "#SBATCH --array=0-1%" in asked


# -- Ray, and workers that are killed --------------------------------------------------------------


class Swept:
    """A sweep in a process of its own; every process that it starts carries a mark."""

    def __init__(self, runnable: Runnable, results: Path, *overrides: str) -> None:
        self.mark = f"SPECFIT_TEST_MARK={uuid.uuid4().hex}"
        name, _, value = self.mark.partition("=")
        where = f"results_dir={results}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "specfit.run", "-m", *runnable.overrides, where, *overrides],
            cwd=ROOT,
            env=os.environ | {name: value, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def workers(self, name: str) -> Iterator[int]:
        """Ids of its processes whose command line holds `name`."""
        for folder in Path("/proc").iterdir():
            try:
                marked = self.mark.encode() in (folder / "environ").read_bytes().split(b"\0")
                if marked and name.encode() in (folder / "cmdline").read_bytes():
                    yield int(folder.name)
            except (OSError, ValueError):
                continue

    def ends(self) -> JobResult:
        out, err = self.process.communicate(timeout=600)
        return JobResult(self.process.returncode, out, err)


LONG = ("selector=ar_cache", "limit=8", "max_new_tokens=60", "cache_slots=2,4")


def kill_a_worker(swept: Swept, results: Path, name: str) -> None:
    """Once two requests of a run have been kept."""
    until = time.monotonic() + 500
    while len(list(results.glob("runs/*/parts/0*"))) < 2:
        assert time.monotonic() < until and swept.process.poll() is None, "it ended too soon"
        time.sleep(0.005)
    os.kill(next(swept.workers(name)), signal.SIGKILL)


@pytest.mark.slow
def test_two_ray_workers_leave_the_rows_of_serial_ones(
    sweep,  # type: ignore[no-untyped-def]
    runnable: Runnable,
    tmp_path: Path,
) -> None:
    needs("ray")
    jobs = "cache_slots=2,99,4"
    _, serial = sweep("serial", *SMALL, jobs)
    ended = Swept(runnable, tmp_path / "ray", *SMALL, "hydra/launcher=ray", jobs).ends()
    assert ended.code == 2
    assert "specfit: cache_slots is 99, but a layer has 16 experts; use all" in ended.err
    assert "Traceback" not in ended.err + ended.out
    assert kept(tmp_path / "ray") == kept(serial)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "name", "once"),
    [
        ("joblib", "LokyProcess", ()),
        ("ray", "ray::_run_job", ("hydra.launcher.ray.remote.max_retries=0",)),
    ],
)
def test_a_sweep_whose_worker_is_killed_is_finished_by_repeating_it(
    sweep,  # type: ignore[no-untyped-def]
    runnable: Runnable,
    tmp_path: Path,
    launcher: str,
    name: str,
    once: tuple[str, ...],
) -> None:
    needs(launcher)
    _, serial = sweep("serial", *LONG)
    results = tmp_path / "killed"
    swept = Swept(runnable, results, *LONG, f"hydra/launcher={launcher}", *once)
    kill_a_worker(swept, results, name)
    ended = swept.ends()
    assert ended.code == 2, ended.err
    assert "specfit: a worker of the sweep was lost (" in ended.err
    assert "Traceback" not in ended.err
    again = Swept(runnable, results, *LONG, f"hydra/launcher={launcher}").ends()
    assert again.code == 0, again.err
    assert "of 8 requests were finished before; going on after them" in again.out
    assert kept(results) == kept(serial)


@pytest.mark.slow
def test_ray_gives_a_killed_workers_job_to_another(
    sweep,  # type: ignore[no-untyped-def]
    runnable: Runnable,
    tmp_path: Path,
) -> None:
    needs("ray")
    _, serial = sweep("serial", *LONG)
    results = tmp_path / "killed"
    swept = Swept(runnable, results, *LONG, "hydra/launcher=ray")
    kill_a_worker(swept, results, "ray::_run_job")
    assert swept.ends().code == 0
    assert kept(results) == kept(serial)
