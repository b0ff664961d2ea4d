"""A suite file, a size and a person's overrides -> cells with their ids. Nothing is run.

A person's override takes the place of the cells' own (`model=qwen3-30b-a3b gpu=local`). One that
begins with a name and a colon is for the cells with that name in their label:
`gsm8k:dataset=gsm8k news:dataset=cnn_dailymail`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from specfit.base.config import DrafterConfig, ModelConfig, RunConfig
from specfit.base.types import SpecfitError
from specfit.storage.suite import Cell, Suite
from specfit.workflows.suites.files import (
    FOLDER,
    SIZES,
    Group,
    SuiteFile,
    choices,
    joined,
    key_of,
    read_suite_file,
    suite_names,
)
from specfit.workflows.suites.sandwich import with_tries

if TYPE_CHECKING:
    from specfit.models.target.fetch import Repository

PROBE = "probe"
"""The study whose file other cells of its suite read: without it they are refused."""

# Keys that no person overrides in a suite -> what to do instead.
OURS = {
    "results_dir": "use RESULTS=<folder> (--results)",
    "repeat": "use REPEATS=<n> (--repeats)",
    "force": "to run a finished cell again, remove its folder",
    "recording": "a replay's recording is found or made",
    "trace": "trace a run with python -m specfit.run",
}


@dataclass(frozen=True)
class Wanted:
    """What a person asked for."""

    size: str = "full"
    arguments: tuple[str, ...] = ()
    repeats: int | None = None  # None: as the suite says
    results: Path = Path("results")
    is_to_run: bool = True  # else only to be shown: then nothing is fetched


@dataclass(frozen=True)
class Work:
    """What is known of a run before it: enough to find finished ones like it."""

    run_id: str
    config: RunConfig
    cache_slots: int
    requests: int
    recording: str | None = None  # id of the recording that a replay needs
    clock: str = "modelled"


@dataclass(frozen=True)
class Planned:
    """A cell and what it takes to run it."""

    cell: Cell
    group: Group
    overrides: tuple[str, ...] = ()  # of the run, or of the run that a bench reads
    work: Work | None = None  # None: a bench that reads no run
    refusal: str | None = None  # why there is no such run here, as where slots do not fit a device

    @property
    def turn(self) -> int | None:
        """Requests that a run decodes before the next one of its block goes on; None: all."""
        return int(self.group.turn) if self.group.turn and self.cell.kind == "run" else None


@dataclass(frozen=True)
class Plan:
    suite: Suite
    planned: tuple[Planned, ...]
    has_tries: bool = False  # blocks of its file are run anew where the machine was not steady

    @property
    def may_grow(self) -> bool:
        """Whether planning again, once this has run, may find more to run."""
        return self.has_tries or bool(self.refused)

    def part(self, names: Sequence[str], results: Path) -> Plan:
        """Cells that have one of these names in their label, and those that are there already."""
        kept = tuple(
            one
            for one in self.planned
            if {*names} & {*one.cell.label.split("/")} or one.cell.is_there(results)
        )
        suite = replace(self.suite, cells=tuple(one.cell for one in kept))
        return replace(self, suite=suite, planned=kept)

    @property
    def refused(self) -> list[Planned]:
        """Cells that cannot be run; the suite's file says nothing while there are any."""
        return [one for one in self.planned if one.refusal is not None]


def plan_suites(names: Sequence[str], wanted: Wanted, folder: Path = FOLDER) -> list[Plan]:
    """Every cell's id, from the config alone. Raises SpecfitError for what is wrong with the files
    or the overrides, and, if they are to be run, where no cell at all can be."""
    files = [read_suite_file(name, folder) for name in names]
    arguments = [Argument.read(text) for text in wanted.arguments]
    check_arguments(arguments, files, folder)
    plans = []
    for file in files:
        planned = without_replays(tuple(plan_file(file, wanted, arguments)))
        if file.sandwich is not None:
            again = partial(plan_again, wanted)
            planned = tuple(with_tries(planned, file.sandwich, wanted.results, again))
        cells = tuple(one.cell for one in planned)
        suite = Suite(file.artifact, wanted.size, wanted.arguments, cells, file.keeps)
        plans.append(Plan(suite, planned, file.sandwich is not None))
    every = [one for plan in plans for one in plan.planned]
    configured = [one for one in every if one.group.is_configured]
    may_help = any(
        one.group.study == PROBE and not one.cell.is_there(wanted.results) for one in every
    )
    refused = bool(configured) and all(one.refusal is not None for one in configured)
    if wanted.is_to_run and refused and not may_help:
        raise SpecfitError(str(configured[0].refusal))
    return plans


def without_replays(planned: tuple[Planned, ...]) -> tuple[Planned, ...]:
    """On the wall clock a replay has no time: a suite that also runs live is its live runs then."""
    if not any(one.cell.kind == "run" for one in planned):
        return planned
    return tuple(
        one
        for one in planned
        if one.work is None or one.work.recording is None or one.work.clock == "modelled"
    )


def plan_file(
    file: SuiteFile, wanted: Wanted, arguments: Sequence[Argument] = ()
) -> Iterator[Planned]:
    """Repeat by repeat, so that systems are interleaved over them."""
    for repeat in range(wanted.repeats or file.repeats):
        for group in file.groups:
            if repeat and not group.is_configured:
                continue  # a study's file has one name
            for label, line in choices(group):
                sized = joined(line, group.sized(wanted.size).split())
                if group.is_configured:
                    mine = [a.override for a in arguments if a.is_for(label)]
                    sized = joined(sized, mine, [f"repeat={repeat}"] if repeat else [])
                yield plan_cell(group, label, sized, repeat, wanted)


def plan_again(wanted: Wanted, one: Planned, label: str, line: list[str]) -> Planned:
    return plan_cell(one.group, label, line, one.cell.repeat, wanted)


def plan_cell(group: Group, label: str, line: list[str], repeat: int, wanted: Wanted) -> Planned:
    if not group.is_configured:
        stem = group.writes if wanted.size != "smoke" else f"{group.writes}-smoke"
        return Planned(Cell(label, group.kind, " ".join(line), stem), group)
    try:
        if not wanted.is_to_run:
            refuse_unfetched(line)
        work = work_of(line, wanted.results, "replay" in (group.kind, group.reads))
    except SpecfitError as error:
        nameless = Cell(label, group.kind, " ".join(line), "", repeat)
        return Planned(nameless, group, tuple(line), refusal=str(error))
    name = group.writes.format(id=work.run_id) if group.kind == "bench" else work.run_id
    return Planned(Cell(label, group.kind, " ".join(line), name, repeat), group, tuple(line), work)


def refuse_unfetched(line: Sequence[str]) -> None:
    """Raises SpecfitError where a run would first fetch its model or its draft head."""
    from specfit.decoding.resolve import repository_of
    from specfit.selection.registry import selector_spec

    config = config_of(line)
    groups: list[tuple[str, ModelConfig | DrafterConfig]] = [("model", config.model)]
    if selector_spec(config.selector.name).drafts:
        groups.append(("drafter", config.drafter))
    for key, group in groups:
        repository = repository_of(key, group)
        if repository is not None and not _is_fetched(repository):
            text = f"{repository.name} is not fetched; {repository.command}"
            raise SpecfitError(f"{' '.join(line)}: {text}")


@cache
def _is_fetched(repository: Repository) -> bool:
    from specfit.models.target.fetch import is_fetched

    return is_fetched(repository)


def config_of(line: Sequence[str]) -> RunConfig:
    """Raises SpecfitError where the line composes to no config."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from specfit.base.config import from_hydra
    from specfit.workflows.hydra_cli import explain
    from specfit.workflows.suites.composing import composed

    try:
        return from_hydra(composed(line))
    except (HydraException, OmegaConfBaseException) as error:
        raise SpecfitError(f"{' '.join(line)}: {explain(error)}") from None
    except SpecfitError as error:
        raise SpecfitError(f"{' '.join(line)}: {error}") from None


def work_of(line: Sequence[str], results: Path, is_replay: bool) -> Work:
    """A replay has the id of the run it stands for. Raises SpecfitError where the line composes to
    no run."""
    from specfit.decoding.resolve import resolve
    from specfit.storage.identity import digest
    from specfit.workflows.execute import run_id_of
    from specfit.workflows.hydra_cli import as_text
    from specfit.workflows.recording.recorder import recording_identity

    config = config_of([*line, as_text("results_dir", results)])
    try:
        spec = resolve(config)
        recording = digest(recording_identity(spec)) if is_replay else None
        requests = len(spec.workload.ids)
        return Work(run_id_of(spec), spec.config, spec.slots, requests, recording, spec.clock)
    except SpecfitError as error:
        raise SpecfitError(f"{' '.join(line)}: {error}") from None


# -- a person's overrides --------------------------------------------------------------------------


@dataclass(frozen=True)
class Argument:
    override: str
    name: str | None = None  # of the cells it is for; None: of all

    @classmethod
    def read(cls, text: str) -> Argument:
        before, equals, _ = text.partition("=")
        if not equals:
            raise SpecfitError(f"{text!r} is not key=value, as in model=qwen3-30b-a3b")
        name, colon, key = before.partition(":")
        return cls(text[len(name) + 1 :], name) if colon and key else cls(text)

    def is_for(self, label: str) -> bool:
        return self.name is None or self.name in label.split("/")


def check_arguments(
    arguments: Sequence[Argument], files: Sequence[SuiteFile], folder: Path = FOLDER
) -> None:
    """Refuses a key that suites set, a name that no suite has, one dataset for two workloads."""
    everywhere = [*files, *(read_suite_file(name, folder) for name in suite_names(folder))]
    names = {name for label, _ in lines_of(everywhere) for name in label.split("/")}
    ours = [line for _, line in lines_of(files)]
    datasets = {item for line in ours for item in line if key_of(item) == "dataset"}
    for argument in arguments:
        name, said = argument.name, argument.override
        if key_of(said) in OURS:
            raise SpecfitError(f"{said} is for the suite to say; {OURS[key_of(said)]}")
        if name is not None and name not in names:
            raise SpecfitError(
                f"{name}:{said} is for cells named {name}, and no suite has any; they are named "
                f"{', '.join(sorted(names))}"
            )
        if name is None and key_of(said).split(".")[0] == "dataset" and len(datasets) > 1:
            raise SpecfitError(
                f"{said} would give {len(datasets)} workloads one dataset; say which, as in "
                f"gsm8k:{said}"
            )


def lines_of(files: Sequence[SuiteFile]) -> Iterator[tuple[str, list[str]]]:
    """(label, override line) of every cell that is or reads a run."""
    for group in (group for file in files for group in file.groups):
        if group.is_configured:
            yield from choices(group)


# -- the command line of plan, reproduce and verify ------------------------------------------------


def parser_of(text: str | None) -> argparse.ArgumentParser:
    """`text` is the script's docstring; its first line says what the script does."""
    parser = argparse.ArgumentParser(
        description=(text or "").splitlines()[0],
        epilog="key=value replaces a value in every cell; name:key=value in those with that name",
    )
    parser.add_argument("--suite", nargs="+", action="extend", help="default: every suite")
    parser.add_argument("--size", choices=SIZES, default=SIZES[0])
    parser.add_argument(
        "--part",
        nargs="+",
        metavar="NAME",
        help="only cells with one of these names in their label",
    )
    parser.add_argument("--repeats", type=int, help="of every run; default: as the suite says")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--experiments", type=Path, default=FOLDER)
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    return parser


def plans_of(options: argparse.Namespace, is_to_run: bool = True) -> list[Plan]:
    """Raises SpecfitError for a suite, a size or an override that is not understood; if they are to
    be run, also where no cell can be."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    requested = Wanted(
        options.size, tuple(options.overrides), options.repeats, options.results, is_to_run
    )
    names = options.suite or suite_names(options.experiments)
    plans = plan_suites(names, requested, options.experiments)
    if options.part:
        plans = [plan.part(options.part, options.results) for plan in plans]
        if not any(plan.planned for plan in plans):
            raise SpecfitError(f"no cell has {' or '.join(options.part)} in its label; see --cells")
    return plans
