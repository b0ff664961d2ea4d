"""A run of scripted requests in a process that may be killed at any moment.

The machine is a recording, so that no process has to load torch; store, execution and rows are
those of `specfit.run`, which puts every request on disk at once.
"""

from __future__ import annotations

import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from specfit.base.config import from_hydra
from specfit.decoding.replay.spec import replay_runtime, resolve_replay
from specfit.storage.recording.files import read_recording, write_recording
from specfit.workflows.execute import Outcome, execute
from specfit.workflows.hydra_cli import compose
from tests.fakes import table_model

ASKED = table_model.requests(0, 5, 11, 16, 60, 70)
CYCLE_SECONDS = 0.01


class Dawdler:
    """Makes every cycle last, so that a kill falls anywhere."""

    def calibrates(self) -> None: ...

    def starts(self, total: int, done: int) -> None: ...

    def sees_cycle(self, cycle: Any) -> None:
        time.sleep(CYCLE_SECONDS)

    def finishes_request(self, part: Any) -> None: ...


def record(folder: Path) -> None:
    config = {
        "model": {"name": "scripted", "path": "nowhere", "calibration_dataset": "embedded_gsm8k"},
        "drafter": {
            "name": "scripted",
            "path": "nowhere",
            "top_k": 2,
            "max_depth": table_model.DEPTH,
        },
        "dataset": {"name": "scripted", "source": "jsonl", "max_new_tokens": 30},
        "max_new_tokens": 30,
        "threads": 1,
    }
    write_recording(folder, table_model.recording(ASKED, config=config))


def run(recording: Path, results: Path, begins: Connection | None = None) -> Outcome:
    """`begins` is told when the work does, and whether this process did any when it ends."""
    said = ["selector=eagle3_cache", "cache_slots=3", "gpu.billed=self", f"results_dir={results}"]
    spec = resolve_replay(from_hydra(compose(said)), read_recording(recording))
    if begins is not None:
        begins.send(True)
    outcome = execute(spec, replay_runtime, Dawdler())
    if begins is not None:
        begins.send(outcome.ran_now)
    return outcome
