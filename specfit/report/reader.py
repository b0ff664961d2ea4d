"""Where the rows of an artifact come from, each run read once however many artifacts show it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from specfit.base.types import SpecfitError
from specfit.report.clock_check import clock_sentence
from specfit.report.footer import Footer, stamp_of
from specfit.report.suite_runs import SuiteRun
from specfit.storage.manifest import read_manifest
from specfit.storage.rows import RunRows, load_run
from specfit.storage.suite import REFERENCE, Found, find_suite, read_suite


class ResultsReader:
    """Suites below `results`. `variant` names a preview or another model's (see results.suite)."""

    def __init__(self, results: Path, variant: str = "") -> None:
        self.results, self.variant = Path(results), variant
        self.cycle: Path | None = None  # figure 1 shows this file's cycle instead of the suite's
        self._members: dict[Path, SuiteRun] = {}

    def suites(self, *names: str) -> list[Found]:
        """All live, or all reference rows: nothing is drawn from two places.

        Raises SpecfitError with the command that is missing.
        """
        found = [find_suite(name, self.results, self.variant) for name in names]
        if len({one.place for one in found}) == 1:
            return found
        reference = self.results / REFERENCE
        packed = [read_suite(reference, name, self.variant) for name in names]
        for one, suite in zip(found, packed, strict=True):
            if suite is None or suite.missing(reference):
                raise SpecfitError(
                    f"rows of {', '.join(names)} lie in two places and are not drawn together; "
                    f"first: {one.suite.command}"
                )
        return [Found(suite, reference) for suite in packed if suite is not None]

    def members(self, *names: str, kind: str = "run") -> list[SuiteRun]:
        """Runs (or replays) of these suites, in order, each once."""
        listed: dict[Path, SuiteRun] = {}
        for found in self.suites(*names):
            for cell in found.suite.cells:
                if cell.kind == kind:
                    path = cell.path(found.place)
                    listed[path] = self._member(path, cell.repeat)
        return list(listed.values())

    def place(self, *names: str) -> Path:
        """The folder that all of it lies in: `results`, or results/reference."""
        return self.suites(*names)[0].place

    def stamp(self, rows: Sequence[RunRows], *names: str, extra: Sequence[str] = ()) -> Footer:
        """Of what was drawn from these suites."""
        found = self.suites(*names)
        modelled = [run.info.profile_digest for run in rows if run.info.clock == "modelled"]
        checks = [clock_sentence(found[0].place, digest) for digest in dict.fromkeys(modelled)]
        notes = [*extra, *(f"{check[0].upper()}{check[1:]}." for check in dict.fromkeys(checks))]
        return stamp_of(rows, found[0].word, any(one.is_preview for one in found), notes, names)

    def _member(self, path: Path, repeat: int) -> SuiteRun:
        if path not in self._members:
            manifest = read_manifest(path)
            assert manifest is not None, "a suite that is found has every run"
            self._members[path] = SuiteRun(manifest, load_run(path), path, repeat)
        return self._members[path]
