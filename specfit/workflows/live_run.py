"""`python -m specfit.run`: one config, one decoder, one workload, rows and a closing table."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from specfit.base.config import RunConfig, from_hydra
from specfit.base.types import SpecfitError
from specfit.storage.atomic import check_writable
from specfit.workflows.waiting import build_runtime, import_libraries


def run(composed: Any) -> int:
    """Exit code: 0, or 3 when every request failed."""
    config = from_hydra(composed)  # before torch is imported: a typo is answered at once
    results = Path(config.results_dir)
    if not (results / "runs").is_dir():  # else the run may be there, and nothing is written
        check_writable(results)
    spec = resolved(config)
    from specfit.report.comparison import job_line
    from specfit.storage.rows import load_run
    from specfit.workflows import hydra_workers
    from specfit.workflows.progress import opening, say, say_failed
    from specfit.workflows.trace import write_trace

    sweeps = in_sweep()
    if not sweeps:
        for line in opening(spec):
            say(line)
    outcome = perform(spec, short=sweeps)
    finished = load_run(outcome.folder)
    if sweeps:
        say(job_line(finished, outcome.ran_now))
        hydra_workers.finished_runs.append(str(outcome.folder))
    else:
        show(spec, outcome, finished)
    if config.trace is not None:
        say(f"trace: {write_trace(spec, outcome)}")
    say_failed(finished)
    return 0 if finished.ok_ids else 3


def calibrate(composed: Any) -> int:
    """`python -m specfit.calibrate`: the fit that a run of this config would use, found or made."""
    config = from_hydra(composed)
    from specfit.decoding.calibration.files import calibrated_cost

    result = calibrated_cost(resolved(config), build_runtime, Path(config.results_dir))
    for line in [result.sentence(), *result.warnings()]:
        print(line)
    print(f"{'made' if result.made_now else 'found'}: {result.path}")
    return 0


def in_sweep() -> bool:
    """Whether this is a job of `-m`: it gets one line, and the sweep one table."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    return HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN


def resolved(config: RunConfig) -> Any:
    """The run's spec. Raises SpecfitError for what a run refuses before it loads anything."""
    if config.record.shard is not None:
        raise SpecfitError(
            "record.shard splits a recording, not a run: a run's expert cache carries over from "
            "request to request, so a part would start cold; split a sweep by run, or record the "
            "shards, merge them and replay the whole"
        )
    refuse_absent(config)
    import_libraries()
    from specfit.decoding.resolve import resolve
    from specfit.workflows.trace import check_request

    spec = resolve(config)
    check_request(spec)
    return spec


def refuse_absent(config: RunConfig) -> None:
    """A checkpoint's folder that is not there is said before seconds of imports."""
    from specfit.base.paths import checkpoint_folder
    from specfit.decoding.spec import locate

    if config.model.source == "checkpoint" and config.model.path:
        checkpoint_folder(locate(config.model.path))


def perform(spec: Any, short: bool = False, until: int | None = None) -> Any:
    """The run's Outcome, under a progress bar and the logger; an oracle's script, another run, is
    made before. `short`: without a line about what is to be expected. `until`: as `execute`."""
    from specfit.decoding.oracle_texts import is_scripted, make_script
    from specfit.workflows.execute import Watchers, execute
    from specfit.workflows.logger import Logger
    from specfit.workflows.progress import Progress, say
    from specfit.workflows.run_time import expected

    if is_scripted(spec):
        make_script(spec, perform, say)
    with Logger(spec) as logger, Progress(spec, None if short else expected) as progress:
        watchers = Watchers(progress, logger)
        waits = partial(say, "waiting for the same run")
        outcome = execute(spec, build_runtime, watchers, on_wait=waits, until=until)
        if outcome.is_finished:
            logger.finished(outcome.folder)
    return outcome


def show(spec: Any, outcome: Any, finished: Any) -> None:
    """The run beside the other systems, or alone where there are none, and what was waited for."""
    from specfit.report.comparison import lines_of
    from specfit.workflows.compare import beside
    from specfit.workflows.progress import say
    from specfit.workflows.shown import texts_of

    if outcome.calibration is not None:
        say(outcome.calibration.sentence())
    state = "finished" if outcome.ran_now else "found finished (force=true runs it again)"
    title = f"run {finished.info.run_id}, {state}"
    others = [] if spec.config.compare is False else beside(spec, finished, say)
    if others:
        say(f"\n{title}\n{place_of(spec, finished)}\n")
        for line in lines_of(finished, others, spec.config.dataset.scorer):
            say(line)
    else:
        alone(spec, finished, title)
    for line in outcome.calibration.warnings() if outcome.calibration is not None else ():
        say(line)
    for line in texts_of(spec, finished, spec.config.show):
        say(line)
    say(waited(outcome, finished))
    if others:
        for line in next_commands(spec, finished):
            say(line)
    say(f"rows: {outcome.folder}")


def place_of(spec: Any, finished: Any) -> str:
    """Workload, cache and whose times they are."""
    from specfit.report.run_summary import counted

    info = finished.info
    cached = f"{info.cache_slots} of {spec.geometry.experts} experts per layer on the device"
    requests = counted(len(finished.ok_ids), "request")
    workload = f"{info.dataset}, {requests}, {cached}; model {info.model}"
    if info.clock != "modelled":
        return f"{workload}, times measured on {info.device}"
    billed = info.model if info.billed in (None, "self") else info.billed
    return f"{workload}, times modelled for {billed} by profile {info.profile}"


def alone(spec: Any, finished: Any, title: str) -> None:
    """The closing table of one run, with what finished runs of the same requests add to it."""
    from specfit.report.explained import against_cache
    from specfit.report.run_summary import closing_table, render
    from specfit.storage.rows import baseline_of
    from specfit.workflows.progress import say

    runs = Path(spec.config.results_dir) / "runs"
    baseline = baseline_of(finished, runs)
    say(render(closing_table(finished, baseline), title))  # the opening has the clock's check
    why = against_cache(runs, finished)
    if why is not None:
        say(why)
    if baseline is None and finished.info.selector != "ar":
        say("speed-up and equal ids are shown once selector=ar has run on the same requests")


def waited(outcome: Any, finished: Any) -> str:
    """All that a person waited for this command, and which parts of it are never billed."""
    from specfit.base.entry import waited_s
    from specfit.report.metrics import summarise
    from specfit.workflows.progress import span

    parts = []
    if outcome.calibration is not None and outcome.calibration.made_now:
        parts.append(f"calibration {span(outcome.calibration_s)}, once")
    atlas_ns = summarise(finished).atlas_ns
    if outcome.ran_now and atlas_ns:
        parts.append(f"exact routes {span(atlas_ns / 1e9)}, off the clock as in the paper")
    apart = f" ({'; '.join(parts)})" if parts else ""
    return f"elapsed {span(waited_s())}{apart}"


def next_commands(spec: Any, finished: Any) -> list[str]:
    """What to type next."""
    rows = (
        (f"python -m specfit.show {finished.info.run_id}", "prompts, answers, accepted drafts"),
        (f"python -m specfit.explain {finished.info.run_id}", "every counter of this run"),
        ("python -m specfit.advise dataset=embedded_news", "does speculation pay on reports"),
        (
            "python -m specfit.doctor gpu=rtx4090 model=qwen3-30b-a3b drafter=redhat-eagle3",
            "a card of yours",
        ),
    )
    width = max(len(command) for command, _ in rows)
    return [
        f"{'next:' if not at else '     '} {command:{width}}  {about}"
        for at, (command, about) in enumerate(rows)
    ]
