"""What the page says beside its artefacts: the suites they came from, and why systems differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from specfit.base.types import SpecfitError
from specfit.report.explain import Explanation, explain
from specfit.report.reader import ResultsReader
from specfit.report.suite_runs import by_system
from specfit.storage.manifest import Manifest, read_manifest
from specfit.storage.rows import RunRows
from specfit.storage.suite import Found

PAIRS = (("specfit", "eagle3_cache"), ("specfit", "ar_cache"), ("eagle3_cache", "ar_cache"))
EXPLAINED = {"table_2": "Reports", "table_3": "Word problems"}  # suite -> its section's title


@dataclass(frozen=True)
class Source:
    """A suite that something on the page was drawn from."""

    found: Found

    @cached_property
    def manifests(self) -> list[Manifest | None]:
        """One a cell; None for a benchmark's file."""
        return [read_manifest(cell.path(self.found.place)) for cell in self.found.suite.cells]


def manifests_of(sources: Iterable[Source]) -> list[Manifest]:
    """Of every run and replay, once though several suites name it."""
    held = {
        cell.path(source.found.place): manifest
        for source in sources
        for cell, manifest in zip(source.found.suite.cells, source.manifests, strict=True)
        if manifest is not None
    }
    return list(held.values())


def sources_of(reader: ResultsReader, entries: Iterable[Mapping[str, Any]]) -> list[Source]:
    """Each suite once for each place (live or reference) that rows of it were taken from."""
    held: dict[tuple[str, str], Source] = {}
    for entry in entries:
        for found in reader.suites(*entry["suites"]) if entry.get("suites") else ():
            held.setdefault((found.suite.artefact, found.place.name), Source(found))
    return list(held.values())


@dataclass(frozen=True)
class Explained:
    """Why one system is faster or slower than another, in the section called `title`."""

    title: str
    command: str
    why: Explanation


def explanations(reader: ResultsReader) -> tuple[list[Explained], list[str]]:
    """And what is missing for more."""
    found: list[Explained] = []
    missing = []
    for suite, title in EXPLAINED.items():
        try:
            runs = by_system(
                reader.members(suite), dict.fromkeys(name for p in PAIRS for name in p)
            )
            found += [explained(title, runs[of], runs[base]) for of, base in PAIRS]
        except SpecfitError as error:
            missing.append(str(error))
    return found, missing


def explained(title: str, run: RunRows, base: RunRows) -> Explained:
    command = f"python -m specfit.explain {run.info.run_id} {base.info.run_id}"
    return Explained(title, command, explain(run, base))
