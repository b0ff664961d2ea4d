"""`python -m specfit.run`: one config, one decoder, one workload, rows and a closing table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specfit.base.config import RunConfig, from_hydra
from specfit.base.types import SpecfitError


def run(composed: Any) -> int:
    """Exit code: 0, or 3 when every request failed."""
    config = from_hydra(composed)  # before torch is imported: a typo is answered at once
    spec = resolved(config)
    from specfit.storage.rows import load_run
    from specfit.workflows.progress import opening, say, say_failed
    from specfit.workflows.trace import write_trace

    for line in opening(spec):
        say(line)
    outcome = perform(spec)
    show(spec, outcome)
    if config.trace is not None:
        say(f"trace: {write_trace(spec, outcome)}")
    finished = load_run(outcome.folder)
    say_failed(finished)
    return 0 if finished.ok_ids else 3


def resolved(config: RunConfig) -> Any:
    """The run's spec. Raises SpecfitError for what a run refuses before it loads anything."""
    if config.record.shard is not None:
        raise SpecfitError(
            "record.shard splits a recording, not a run: a run's expert cache carries over from "
            "request to request, so a part would start cold; split a sweep by run, or record the "
            "shards, merge them and replay the whole"
        )
    from specfit.decoding.resolve import resolve
    from specfit.workflows.trace import check_request

    spec = resolve(config)
    check_request(spec)
    return spec


def perform(spec: Any) -> Any:
    """The run's Outcome, under a progress bar and the logger; an oracle's script, another run, is
    made before."""
    from specfit.decoding.live import build_runtime
    from specfit.decoding.oracle_texts import is_scripted, make_script
    from specfit.workflows.execute import Watchers, execute
    from specfit.workflows.logger import Logger
    from specfit.workflows.progress import Progress, say
    from specfit.workflows.run_time import expected

    if is_scripted(spec):
        make_script(spec, perform, say)
    with Logger(spec) as logger, Progress(spec, expected) as progress:
        watchers = Watchers(progress, logger)
        outcome = execute(
            spec, build_runtime, watchers, on_wait=lambda: say("waiting for the same run")
        )
        logger.finished(outcome.folder)
    return outcome


def show(spec: Any, outcome: Any) -> None:
    from specfit.report.explained import against_cache
    from specfit.report.run_summary import closing_table, render
    from specfit.storage.rows import baseline_of, load_run
    from specfit.workflows.progress import say

    finished = load_run(outcome.folder)
    runs = Path(spec.config.results_dir) / "runs"
    baseline = baseline_of(finished, runs)
    if outcome.calibration is not None:
        say(outcome.calibration.sentence())
    state = "finished" if outcome.ran_now else "found finished (force=true runs it again)"
    table = closing_table(finished, baseline, runs.parent)
    say(render(table, f"run {finished.info.run_id}, {state}"))
    why = against_cache(runs, finished)
    if why is not None:
        say(why)
    if baseline is None and finished.info.selector != "ar":
        say("speed-up and equal ids are shown once selector=ar has run on the same requests")
    say(f"rows: {outcome.folder}")
