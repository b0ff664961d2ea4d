"""`python -m specfit.run`: one config, one decoder, one workload, rows and a closing table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from specfit.commands import hydra_command
from specfit.config import from_hydra


def run(composed: Any) -> int:
    """Exit code: 0, or 3 when every request failed."""
    config = from_hydra(composed)
    from specfit.console import Progress, say
    from specfit.execution import execute
    from specfit.resolve import resolve
    from specfit.results.rows import load_run

    facts = resolve(config)
    say(headline(facts))
    for note in facts.notes:
        say(note)
    outcome = execute(facts, Progress(facts), on_wait=lambda: say("waiting for the same run"))
    if config.trace is not None:
        from specfit.tracing import write_trace

        say(f"trace: {write_trace(facts, outcome)}")
    show(facts, outcome)
    return 0 if load_run(outcome.folder).ok_ids else 3


def headline(facts: Any) -> str:
    """Device, clock and profile: the first line of every run."""
    bill = "" if facts.billing.name == "self" else f", billed as {facts.billing.name}"
    times = "times are modelled" if facts.clock == "modelled" else "times are measured"
    return (
        f"device {facts.device.type} ({facts.device_name}); clock {facts.clock} ({times}); "
        f"profile {facts.profile.name}{bill}"
    )


def show(facts: Any, outcome: Any) -> None:
    from specfit.calibrate import describe
    from specfit.console import say
    from specfit.results.find import find_twin
    from specfit.results.rows import load_run
    from specfit.results.table import closing_table, render

    finished = load_run(outcome.folder)
    runs = Path(facts.config.results_dir) / "runs"
    twin = None if finished.info.selector == "ar" else find_twin(runs, finished.info)
    baseline = load_run(twin) if twin is not None else None
    if outcome.calibration is not None:
        say(describe(outcome.calibration.path))
    state = "finished" if outcome.ran_now else "found finished (force=true runs it again)"
    say(render(closing_table(finished, baseline), f"run {finished.info.run_id}, {state}"))
    if baseline is None and finished.info.selector != "ar":
        say("speed-up and equal ids are shown once selector=ar has run on the same requests")
    say(f"rows: {outcome.folder}")


if __name__ == "__main__":
    sys.exit(hydra_command(run))
