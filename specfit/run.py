"""`python -m specfit.run`: one config, one decoder, one workload, rows and a closing table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from specfit.commands import hydra_command
from specfit.config import from_hydra


def run(composed: Any) -> int:
    """Exit code: 0, or 3 when every request failed."""
    config = from_hydra(composed)  # before torch is imported: a typo is answered at once
    from specfit.build import build_machine
    from specfit.console import Progress, headline, say
    from specfit.execution import execute
    from specfit.resolve import resolve
    from specfit.results.rows import load_run
    from specfit.scripted import is_scripted, make_script
    from specfit.tracing import check_request, write_trace

    facts = resolve(config)
    check_request(facts)
    say(headline(facts))
    for note in facts.notes:
        say(note)
    if is_scripted(facts):
        make_script(facts, _run_plain, say)
    with Progress(facts) as progress:
        outcome = execute(
            facts, build_machine, progress, on_wait=lambda: say("waiting for the same run")
        )
    show(facts, outcome)
    if config.trace is not None:
        say(f"trace: {write_trace(facts, outcome)}")
    return 0 if load_run(outcome.folder).ok_ids else 3


def _run_plain(facts: Any) -> None:
    """The run whose ids an oracle drafts."""
    from specfit.build import build_machine
    from specfit.console import Progress
    from specfit.execution import execute

    with Progress(facts) as progress:
        execute(facts, build_machine, progress)


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
