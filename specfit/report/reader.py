"""Where the rows of an artifact come from, each run read once however many artifacts show it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from specfit.base.types import SpecfitError
from specfit.report.clock_check import clock_sentence
from specfit.report.footer import Footer, stamp_of
from specfit.report.suite_runs import SuiteRun
from specfit.storage.manifest import read_manifest
from specfit.storage.recording.files import Recording, find_recording, read_recording
from specfit.storage.recording.requests import RecordedRequest
from specfit.storage.rows import RunRows, load_run
from specfit.storage.suite import REFERENCE, Found, find_suite, read_suite

BOUND = "policy=belady"


class ResultsReader:
    """Suites below `results`. `variant` names a preview or another model's (see results.suite)."""

    def __init__(self, results: Path, variant: str = "") -> None:
        self.results, self.variant = Path(results), variant
        self._members: dict[Path, SuiteRun] = {}
        self._recordings: dict[Path, Recording] = {}

    def suites(self, *names: str) -> list[Found]:
        """All live, or all reference rows: nothing is drawn from two places.

        Raises SpecfitError with the command that is missing.
        """
        found = [find_suite(name, self.results, self.variant) for name in names]
        if len({one.place for one in found}) == 1:
            return found
        reference = self.results / REFERENCE
        kept = [read_suite(reference, name, self.variant) for name in names]
        for one, suite in zip(found, kept, strict=True):
            if suite is None or suite.missing(reference):
                raise SpecfitError(
                    f"rows of {', '.join(names)} lie in two places and are not drawn together; "
                    f"first: {one.suite.command}"
                )
        return [Found(suite, reference) for suite in kept if suite is not None]

    def members(self, *names: str, kind: str = "") -> list[SuiteRun]:
        """Replays of these suites in order, each once; of a suite that replays nothing, its runs.

        `kind` names one of the two, and bounds that no machine reaches are then among them. Live
        runs beside replays are for `report.live_check`.
        """
        listed: dict[Path, SuiteRun] = {}
        for found in self.suites(*names):
            kinds = {cell.kind for cell in found.suite.cells}
            wanted = kind or ("replay" if "replay" in kinds else "run")
            for cell in found.suite.cells:
                is_bound = not kind and BOUND in cell.overrides.split()
                if cell.kind == wanted and not is_bound:
                    path = cell.path(found.place)
                    listed[path] = self._member(path, cell.repeat)
        return list(listed.values())

    def place(self, *names: str) -> Path:
        """The folder that all of it lies in: `results`, or results/reference."""
        return self.suites(*names)[0].place

    def recording(self, member: SuiteRun, place: Path) -> Recording:
        """What a replay read."""
        named = member.rows.info.recording
        assert named is not None, "only a replay has a recording"
        folder = find_recording(named, place)
        if folder not in self._recordings:
            self._recordings[folder] = read_recording(folder)
        return self._recordings[folder]

    def recorded_requests(self, member: SuiteRun, place: Path) -> list[RecordedRequest]:
        """The recorded requests that the replay answered, failed ones left out."""
        wanted = set(member.rows.ok_ids)
        return [r for r in self.recording(member, place).requests if r.request_id in wanted]

    def stamp(self, rows: Sequence[RunRows], *names: str, extra: Sequence[str] = ()) -> Footer:
        """Of what was drawn from these suites."""
        found = self.suites(*names)
        modelled = [run.info.profile_digest for run in rows if run.info.clock == "modelled"]
        checks = [clock_sentence(found[0].place, digest) for digest in dict.fromkeys(modelled)]
        told = [*extra, *(f"{check[0].upper()}{check[1:]}." for check in dict.fromkeys(checks))]
        return stamp_of(rows, found[0].word, any(one.is_preview for one in found), told, names)

    def _member(self, path: Path, repeat: int) -> SuiteRun:
        if path not in self._members:
            manifest = read_manifest(path)
            assert manifest is not None, "a suite that is found has every run"
            self._members[path] = SuiteRun(manifest, load_run(path), path, repeat)
        return self._members[path]
