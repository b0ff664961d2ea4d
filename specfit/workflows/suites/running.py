"""Cells to finished runs, in this process: they share the loaded model and every calibration."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count, groupby
from pathlib import Path

from specfit.base.config import RunConfig
from specfit.base.entry import one_line, print_error
from specfit.base.types import SpecfitError
from specfit.storage.recording.files import MANIFEST, Recording, find_longer, read_once
from specfit.storage.rows import load_run
from specfit.storage.suite import Cell
from specfit.workflows.hydra_cli import attempt
from specfit.workflows.progress import say_failed
from specfit.workflows.studies import study_named, write_study
from specfit.workflows.suites.files import key_of
from specfit.workflows.suites.planning import Plan, Planned
from specfit.workflows.suites.sandwich import block_of

Say = Callable[[str], None]


def todo(plans: Sequence[Plan], results: Path) -> list[Planned]:
    """What is not there yet, each id once: suites share runs. Repeat 0 of all comes before 1."""
    missing: dict[tuple[str, str], Planned] = {}
    everything = [one for plan in plans for one in plan.planned]
    for one in sorted(everything, key=lambda one: one.cell.repeat):
        if one.refusal is None and not one.cell.is_there(results):
            missing.setdefault((one.cell.kind, one.cell.id), one)
    return list(missing.values())


@dataclass(frozen=True)
class Failed:
    cell: Cell
    why: str

    def sentence(self) -> str:
        cell = self.cell
        return f"failed: {cell.kind} {cell.id} ({cell.label}): {cell.overrides}: {self.why}"


def sentences(failed: Sequence[Failed]) -> list[str]:
    """One for each reason: the first cell that gives it, and how many share it."""
    counts = Counter(one.why for one in failed)
    first = {one.why: one for one in reversed(failed)}
    return [
        one.sentence() + (f" (and {counts[why] - 1} cells more)" if counts[why] > 1 else "")
        for why, one in sorted(first.items(), key=lambda item: failed.index(item[1]))
    ]


def run_all(cells: Sequence[Planned], results: Path, say: Say) -> list[Failed]:
    """Runs every one, whatever happened to those before; returns those that failed, and why."""
    failed = []
    for _, block in groupby(enumerate(cells, 1), key=lambda numbered: block_of(numbered[1])):
        left = list(block)
        for turn in count(1):
            for number, one in list(left):
                nth = f", turn {turn}" if one.turn else ""
                cell = f"{one.cell.kind} {one.cell.id}, {one.cell.label}{nth}"
                say(f"== {number} of {len(cells)}: {cell}")
                why = reason_of_failing(one, results, say, turn)
                if why:
                    failed.append(Failed(one.cell, why))
                if why or one.turn is None or one.cell.is_there(results):
                    left.remove((number, one))
            if not left:
                break
    return failed


def reason_of_failing(one: Planned, results: Path, say: Say, turn: int = 1) -> str:
    """Empty where the cell was run, or has had this turn. The reason is said at once, too."""
    has_ended = True

    def job(_: object) -> int:
        nonlocal has_ended
        if one.turn is not None:
            has_ended = _run(one, results, say, turn * one.turn)
        else:
            RUNNERS[one.cell.kind](one, results, say)
        return 0

    try:
        code, why = attempt(job, None)
    except Exception as error:  # a defect of one cell is shown and stops no other
        traceback.print_exc()
        return f"a defect, {type(error).__name__}: {one_line(error)}"
    if why:
        print_error(SpecfitError(why))
    if code == 0 and has_ended and not one.cell.is_there(results):
        return "it left no finished rows"
    return why


# -- one of each kind ------------------------------------------------------------------------------


def _run(one: Planned, results: Path, say: Say, until: int | None = None) -> bool:
    """Whether it has finished, and not only its requests up to `until`."""
    from specfit.decoding.resolve import resolve
    from specfit.workflows.live_run import perform

    assert one.work is not None, "a run has a config"
    outcome = perform(resolve(one.work.config), short=until is not None, until=until)
    if outcome.is_finished:
        _check_done(one, outcome.folder)
    return outcome.is_finished


def _replay(one: Planned, results: Path, say: Say) -> None:
    from specfit.decoding.replay.spec import replay_runtime, resolve_replay
    from specfit.workflows.execute import execute
    from specfit.workflows.progress import Progress
    from specfit.workflows.replay import BELOW

    assert one.work is not None, "a replay has a config"
    recording, config = _recorded(one, results, say), one.work.config
    if config.routes.name == "learned":
        _predict(config, recording, say)
    said = [key_of(item) for item in one.overrides]
    spec = resolve_replay(config, recording, said)
    with Progress(spec) as progress:
        _check_done(one, execute(spec, replay_runtime, progress, below=BELOW).folder)


def _recorded(one: Planned, results: Path, say: Say) -> Recording:
    """Made when missing: once for every replay of the same pair and requests. One of more requests
    that begins with these serves as well."""
    from specfit.decoding.resolve import resolve
    from specfit.workflows.recording.recorder import find_or_record, recording_identity

    assert one.work is not None and one.work.recording is not None, "planned for a replay"
    folder = results / "recordings" / one.work.recording
    if not (folder / MANIFEST).is_file():
        # a policy of replays only has no run, and what moves experts no part in a recording
        spec = resolve(replace(one.work.config, policy="lru"))
        longer = find_longer(results, recording_identity(spec))
        if longer is not None:
            return read_once(longer)
        find_or_record(spec, say)
    return read_once(folder)


def _predict(config: RunConfig, recording: Recording, say: Say) -> None:
    """What the predictor says in the recording, added when missing."""
    from specfit.decoding.resolve import resolve
    from specfit.workflows.recording.predicting import add_predictions

    add_predictions(resolve(config), recording, say)


def _bench(one: Planned, results: Path, say: Say) -> None:
    group, out = one.group, one.cell.path(results)
    study, read = study_named(group.study), _read_by(one, results)
    try:
        if read is not None:
            document = study(read)
        else:
            options = (item.split("=", 1) for item in one.cell.overrides.split())
            document = study(**{name: float(value) for name, value in options})
    except SpecfitError as error:
        raise SpecfitError(f"study {group.study}: {error}") from None
    write_study(group.study, document, out)
    say(f"written: {out}")


def _read_by(one: Planned, results: Path) -> Path | None:
    """The run or replay that a bench reads: another cell of its suite, run before it."""
    if one.work is None:
        return None
    read = Cell(one.cell.label, one.group.reads, one.cell.overrides, one.work.run_id)
    if not read.is_there(results):
        raise SpecfitError(f"it reads {read.kind} {read.id}, which has not finished")
    return read.path(results).resolve()


RUNNERS: dict[str, Callable[[Planned, Path, Say], object]] = {
    "run": _run,
    "replay": _replay,
    "bench": _bench,
}


def _check_done(one: Planned, folder: Path) -> None:
    say_failed(load_run(folder))
    if folder.name != one.cell.id:
        print_error(SpecfitError(f"{one.cell.id} became {folder.name}: code or files changed"))
