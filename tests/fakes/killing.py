"""Work that may be killed at any moment: a run of scripted requests, a store, `make reproduce`.

    python -m tests.fakes.killing store RUNS [DIE_IN]
    python -m tests.fakes.killing reproduce EXPERIMENTS WHOLE KILLED KILLS [overrides]

The machine of a scripted run is a recording, so that no process has to load torch; store, execution
and rows are those of `specfit.run`, which puts every request on disk at once. Each part imports
what it needs when it is called.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fakes.rows import manifest, part

if TYPE_CHECKING:
    from specfit.storage.request_files import Part
    from specfit.workflows.execute import Outcome

CYCLE_SECONDS = 0.01

# -- a run of scripted requests, in a child of the test --------------------------------------------


def record(folder: Path) -> None:
    from specfit.storage.recording.files import write_recording
    from tests.fakes import table_model

    named = {"name": "scripted", "path": "nowhere"}
    config = {
        "model": named | {"calibration_dataset": "embedded_gsm8k"},
        "drafter": named | {"top_k": 2, "max_depth": table_model.DEPTH},
        "dataset": {"name": "scripted", "source": "jsonl", "max_new_tokens": 30},
        "max_new_tokens": 30,
        "threads": 1,
    }
    requests = table_model.requests(0, 5, 11, 16, 60, 70)
    write_recording(folder, table_model.recording(requests, config=config))


def run(recording: Path, results: Path, begins: Connection | None = None) -> Outcome:
    """`begins` is told when the work does, and whether this process did any when it ends."""
    from specfit.base.config import from_hydra
    from specfit.decoding.replay.spec import replay_runtime, resolve_replay
    from specfit.storage.recording.files import read_recording
    from specfit.workflows.execute import Watcher, execute
    from specfit.workflows.hydra_cli import compose

    class Dawdler(Watcher):
        """Makes every cycle last, so that a kill falls anywhere."""

        def sees_cycle(self, cycle: Any) -> None:
            time.sleep(CYCLE_SECONDS)

    said = ["selector=eagle3_cache", "cache_slots=3", "gpu.billed=self", f"results_dir={results}"]
    spec = resolve_replay(from_hydra(compose(said)), read_recording(recording))
    if begins is not None:
        begins.send(True)
    outcome = execute(spec, replay_runtime, Dawdler())
    if begins is not None:
        begins.send(outcome.ran_now)
    return outcome


# -- a store of five requests ----------------------------------------------------------------------

RUN_ID = "a" * 12
IDS = ["q0", "q/1", "q 2", "..", "q4"]


def part_of(name: str) -> Part:
    return part(name, (1, 2 + IDS.index(name), 1))


def fill_store(runs: str, die_in: str | None = None) -> list[str]:
    """The requests that this process did; `die_in` is the one in whose writing it dies."""
    from specfit.storage import request_files
    from specfit.storage.run_folder import RunStore

    store, did = RunStore(Path(runs), RUN_ID), []
    with store.locked():
        store.begin(manifest(IDS, RUN_ID), "seed: 0\n")
        if store.is_finished():
            return did
        for name in IDS[len(store.finished_requests()) :]:
            if name == die_in:
                request_files.np.savez = lambda *a, **k: os._exit(9)
            time.sleep(0.02)
            store.add(part_of(name))
            did.append(name)
        store.finish()
    return did


# -- `make reproduce` in forked children -----------------------------------------------------------


def child(experiments: str, results: str, overrides: list[str]) -> int:
    """Forked once everything is imported, so that a moment falls into the work."""
    from scripts import reproduce
    from specfit.base.entry import script

    pid = os.fork()
    if pid == 0:
        folders = ["--experiments", experiments, "--results", results]
        sys.argv = ["reproduce.py", *folders, "--", *overrides]
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        os._exit(script(reproduce.main))
    return pid


def seconds_alone(experiments: str, results: str, overrides: list[str]) -> float:
    begun = time.monotonic()
    _, status = os.waitpid(child(experiments, results, overrides), 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return time.monotonic() - begun


def kill_reproduce(
    experiments: str, whole: str, killed: str, kills: str, *overrides: str
) -> list[str]:
    """At random moments, until one child finishes; how many were killed."""
    words = list(overrides)
    work_s = seconds_alone(experiments, whole, words)
    plan_s = seconds_alone(experiments, whole, words)  # nothing is left to run
    moments, done = random.Random(20_261), 0
    while done < int(kills):
        pid = child(experiments, killed, words)
        time.sleep(plan_s + moments.uniform(0, 2 * (work_s - plan_s) / int(kills)))
        if os.waitpid(pid, os.WNOHANG)[0]:
            break
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        done += 1
    seconds_alone(experiments, killed, words)
    return [str(done)]


if __name__ == "__main__":
    work: Any = {"store": fill_store, "reproduce": kill_reproduce}[sys.argv[1]]
    print(*work(*sys.argv[2:]), sep="\n")
