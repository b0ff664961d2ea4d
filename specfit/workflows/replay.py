"""`python -m specfit.replay recording=<id or folder>`: any selector, slots, policy and profile over
recorded pools, through the decoder itself, without a model and without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specfit.base.config import from_hydra
from specfit.base.types import SpecfitError

BELOW = "replays"
"""Rows go to results_dir/replays/<run id>: the id that the same run of the model has."""


def replay(composed: Any) -> int:
    """Exit code: 0, or 3 when every request had failed in the recording."""
    from hydra.core.hydra_config import HydraConfig

    from specfit.decoding.replay.spec import replay_runtime, resolve_replay
    from specfit.report.run_summary import closing_table, render
    from specfit.storage.recording.files import find_recording, read_once
    from specfit.storage.rows import load_run
    from specfit.workflows.execute import execute
    from specfit.workflows.progress import Progress, opening, say, say_failed

    config = from_hydra(composed)
    if config.recording is None:
        raise SpecfitError("name a recording: recording=<id or folder>; see specfit.record")
    recording = read_once(find_recording(config.recording, Path(config.results_dir)))
    said = [item.lstrip("+~").split("=")[0] for item in HydraConfig.get().overrides.task]
    spec = resolve_replay(config, recording, said)
    for line in opening(spec):
        say(line)
    with Progress(spec) as progress:
        outcome = execute(spec, replay_runtime, progress, below=BELOW)
    finished = load_run(outcome.folder)
    if outcome.calibration is not None:
        say(outcome.calibration.sentence())
    state = "replayed" if outcome.ran_now else "found replayed (force=true replays it again)"
    table = closing_table(finished, None, Path(config.results_dir))
    say(render(table, f"run {finished.info.run_id}, {state}"))
    for line in outcome.calibration.warnings() if outcome.calibration is not None else ():
        say(line)
    say(f"rows: {outcome.folder}")
    say_failed(finished)
    return 0 if finished.ok_ids else 3
