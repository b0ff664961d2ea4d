"""A run beside AR, AR + cache and EAGLE-3 + cache on its own requests.

On the modelled clock one recording of the requests gives every other system by replay, with the
rows of a live run. On the wall clock nothing is replayed: finished runs are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from specfit.base.config import CalibrationConfig, RunConfig
from specfit.base.types import SpecfitError
from specfit.decoding.resolve import LiveRunSpec
from specfit.decoding.spec import PACKAGE
from specfit.report.comparison import Compared
from specfit.selection.registry import selector_spec
from specfit.storage.rows import RunRows, load_run

BASELINES = ("ar", "ar_cache", "eagle3_cache")
RESET: dict[str, Any] = {
    "objective": "ratio",
    "lambda_tokens_per_s": None,
    "cost": "union",
    "level_cost_ms": 0.0,
    "prefetch": "off",
    "prefetch_blocks": None,
    "trace": None,
    "force": False,
}
"""Keys of a selector or of early copies, which the systems compared with do not have."""

Say = Callable[[str], None]


def beside(spec: LiveRunSpec, run: RunRows, say: Say) -> list[Compared]:
    """The other systems, those that can be had. Raises SpecfitError where recording fails."""
    specs = dict(baseline_specs(spec))
    found = {name: finished(one, "runs") for name, one in specs.items()}
    absent = [name for name, rows in found.items() if rows is None]
    result = {name: Compared(rows) for name, rows in found.items() if rows is not None}
    if absent and records(spec):
        recording, own_ids = recorded(spec, run, say)
        for name in absent:
            result[name] = Compared(replayed(specs[name], recording), own_ids)
    return [result[name] for name in BASELINES if name in result]


def baseline_specs(spec: LiveRunSpec) -> Iterator[tuple[str, LiveRunSpec]]:
    """The same requests, machine and cache; selectors that are not the run's own."""
    from specfit.workflows.advice import applied

    for name in BASELINES:
        if name == spec.config.selector.name:
            continue
        plain = applied(spec.config, [f"selector={name}"])
        config = replace(plain, calibration=CalibrationConfig(), **RESET)
        slots = 0 if config.is_uncached else spec.slots
        config = replace(config, cache_slots=slots)
        yield name, replace(spec, config=config, kind=selector_spec(name), slots=slots)


def finished(spec: LiveRunSpec, below: str) -> RunRows | None:
    """The rows of this very run, by its id; None where it has not been run."""
    from specfit.workflows.execute import run_id_of

    folder = Path(spec.config.results_dir) / below / run_id_of(spec)
    try:
        return load_run(folder)
    except SpecfitError:
        return None


def records(spec: LiveRunSpec) -> bool:
    """Whether the requests are recorded for a comparison: by default those of a packaged model,
    which takes seconds; `compare=true` asks for it of any."""
    config = spec.config
    made_up = config.model.routing != "weights" or config.drafter.name == "oracle"
    if spec.clock != "modelled" or made_up:
        return False
    return bool(config.compare) or (
        config.compare is None
        and config.model.source == "checkpoint"
        and config.model.path.startswith(PACKAGE)
    )


def recorded(spec: LiveRunSpec, run: RunRows, say: Say) -> tuple[Any, bool]:
    """The recording of these requests, and whether its ids were decoded apart from `run`.

    A new one decodes them itself, one token at a time: that is what AR says, found out anew.
    """
    from specfit.storage.recording.files import MANIFEST, read_once
    from specfit.workflows.progress import Countdown
    from specfit.workflows.recording.recorder import (
        make_recording,
        recording_folder,
        recording_identity,
    )

    features = replace(spec.config.record, features=False, shard=None)
    spec = replace(spec, config=replace(spec.config, record=features, force=False))
    folder = recording_folder(spec)
    if not (folder / MANIFEST).is_file():
        say("recording these requests once, for the other systems")
        with Countdown() as countdown:
            make_recording(spec, folder, recording_identity(spec), _quiet, {}, countdown)
    recording = read_once(folder)
    source = recording.notes["requests"].get("ids_from")
    return recording, source != run.info.run_id


def replayed(spec: LiveRunSpec, recording: Any) -> RunRows:
    """Below results_dir/replays, under the id that the live run would have."""
    from specfit.decoding.replay.spec import replay_runtime, resolve_replay
    from specfit.workflows.execute import Watcher, execute
    from specfit.workflows.replay import BELOW

    config: RunConfig = replace(spec.config, recording=recording.recording_id)
    outcome = execute(resolve_replay(config, recording), replay_runtime, Watcher(), below=BELOW)
    return load_run(outcome.folder)


def _quiet(text: str) -> None:
    """What a recording says beside its countdown."""
