"""What the template shows: plain values from the index of artifacts and from the rows."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from specfit.base.types import SpecfitError
from specfit.report.artifacts.setup import versions_sheet
from specfit.report.artifacts.slots import trends_against
from specfit.report.artifacts.systems import (
    control_of,
    describe,
    ids_beside,
    ours_of,
    shown,
    speed_over,
)
from specfit.report.explain import explain
from specfit.report.explained import numbers, sentence
from specfit.report.figures import NARROW
from specfit.report.footer import words_of
from specfit.report.page.outline import LEAD, Section, label, sections_of
from specfit.report.page.svg import inline
from specfit.report.pairs import pairs_of
from specfit.report.paper_values import CLAIMS, Claim
from specfit.report.quantities import QUANTITIES
from specfit.report.reader import ResultsReader
from specfit.report.robustness import robustness
from specfit.report.styles import SYSTEMS, style_of, workload_of
from specfit.report.suite_runs import SuiteRun, by_system, pick
from specfit.report.table_format import Cell, Entry, Sheet, factor, measured, plain, to_plain
from specfit.report.verdict import (
    MEANING,
    OPEN,
    OTHER,
    PAPER_TARGETS,
    SAME,
    UNTOLD,
    WORDS,
    is_clear,
    verdict,
)
from specfit.storage.manifest import Manifest, read_manifest
from specfit.storage.rows import RunRows
from specfit.storage.suite import Cell as SuiteCell
from specfit.storage.suite import Found

HERE = Path(__file__).parent
Index = Mapping[str, Mapping[str, Any]]
Values = dict[str, Any]

HEADLINES = ("table_2", "table_3")  # a card each
CARD = ("specfit", "eagle3_cache", "ar_cache")
PAIRS = (("specfit", "eagle3_cache"), ("specfit", "ar_cache"), ("eagle3_cache", "ar_cache"))
SIDE_BY_SIDE = ("table_2", "table_3", "table_4")
HOMES = {"figure_4": "table_figure_4", "section_4_6": "table_section_4_6"}
COMPARED = (SAME, OPEN, UNTOLD)
FAR = 1.5  # told where our ratio is worse than the paper's by more than this factor
CLOCKS = {
    "modelled": "times are modelled: computed from a profile, nothing measured enters them",
    "wall": "times are measured",
}


def render(index: Index, results: Path, reader: ResultsReader) -> tuple[str, list[str]]:
    """The page, and what is missing for more. Raises SpecfitError where drawn rows are gone."""
    cards, why, missing = headlines(reader)
    sources = sources_of(reader, index.values())
    manifests = manifests_of(sources)
    values = {
        "style": Markup((HERE / "style.css").read_text(encoding="utf-8")),
        "cards": cards,
        "why": why,
        "unexplained": missing,
        "summary": summary(index, manifests),
        "missing": [(name, label(name)) for name, entry in index.items() if "missing" in entry],
        "meanings": MEANING,
        "verdicts": verdicts(index),
        "otherwise": otherwise(reader),
        "lead": section(LEAD, index, results) if set(LEAD.names) <= set(index) else None,
        "sections": [section(one, index, results) for one in sections_of(index)],
        "versions": table(to_plain(versions_sheet(manifests)), "code-and-machine"),
        "suites": [suite(source) for source in sources],
    }
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html.jinja").render(values), missing


# -- the first screen ------------------------------------------------------------------------------


def headlines(reader: ResultsReader) -> tuple[list[Values], list[Values], list[str]]:
    """A card and the reasons for it, for each headline suite; and what is missing."""
    cards, why, missing = [], [], []
    for name in HEADLINES:
        try:
            members = reader.members(name)
            runs = by_system(members, CARD)
        except SpecfitError as error:
            missing.append(str(error))
            continue
        cards.append(card(name, members[0], runs) | {"pairs": over_pairs(reader, name)})
        for of, base in PAIRS:
            why.append(reason(members[0].workload.label, runs[of], runs[base]))
    return cards, why, missing


def card(name: str, first: SuiteRun, runs: Mapping[str, RunRows]) -> Values:
    """Speeds of three systems as bars, SpecFit's over the others' beside them."""
    speed = QUANTITIES["speed"]
    speeds = {system: speed.of(run).value or 0.0 for system, run in runs.items()}
    most = max(speeds.values())
    bars = []
    for system, value in speeds.items():
        ratio = None if system == "specfit" else speed.ratio(runs["specfit"], runs[system])
        bars.append(
            {
                "label": style_of(system).label,
                "colour": style_of(system).colour,
                "share": round(100 * value / most, 1) if most else 0,
                "speed": plain(value),
                "ratio": "" if ratio is None else measured(ratio, factor).text,
            }
        )
    run = runs["specfit"]
    found = robustness(run, runs["eagle3_cache"])
    return {
        "robust": f"SpecFit over {style_of('eagle3_cache').label}: "
        f"{measured(found.without, factor).text} without {found.degenerate} degenerate outputs, "
        f"{found.span or '-'} without any one request",
        "artifact": name,
        "workload": first.workload.label,
        "timed": run.info.timed,
        "slots": run.info.cache_slots,
        "n": len(run.ok_ids),
        "bars": bars,
    }


def over_pairs(reader: ResultsReader, suite: str) -> str:
    """SpecFit over EAGLE-3 + cache of every pair that the rows hold; "" where they hold one."""
    pairs = pairs_of(reader, suite)
    if not pairs.others:
        return ""
    return f"{pairs.heading}: {pairs.range(speed_over('eagle3_cache'), factor).text}"


def reason(title: str, run: RunRows, base: RunRows) -> Values:
    """Why `run` is faster or slower than `base`."""
    found = explain(run, base)
    command = f"python -m specfit.explain {run.info.run_id} {base.info.run_id}"
    return {
        "title": title,
        "sentence": sentence(found),
        "command": command,
        "numbers": numbers(found),
    }


def summary(index: Index, manifests: Sequence[Manifest]) -> list[str]:
    """What there is, what it ran on, and what may be said of it."""
    infos = [manifest.info for manifest in manifests]
    drawn = sum("missing" not in entry for entry in index.values())
    lines = []
    if not any(i.model in PAPER_TARGETS and i.clock == "wall" for i in infos):
        lines.append(
            "Nothing here ran on the paper's models against a wall clock: no number of the paper "
            "is reproduced or refuted on this page. Directions can be compared."
        )
    lines.append(f"{drawn} tables and figures from {len(infos)} runs and replays.")
    if infos:
        clocks = "; ".join(f"{c} ({CLOCKS[c]})" for c in dict.fromkeys(i.clock for i in infos))
        lines.append(
            f"Models: {_each(i.model for i in infos)}. Workloads: "
            f"{_each(workload_of(i).label for i in infos)}. Profiles: "
            f"{_each(i.profile for i in infos)}. Devices: {_each(i.device for i in infos)}. "
            f"Clock: {clocks}."
        )
    return lines


def _each(values: Iterable[Any]) -> str:
    return ", ".join(dict.fromkeys(str(value) for value in values))


# -- verdicts --------------------------------------------------------------------------------------


def verdicts(index: Index) -> Values | None:
    """How often each verdict was given, by artifact."""
    given = {name: found for name, entry in index.items() if (found := _verdicts(entry))}
    if not given:
        return None
    counts = {name: Counter(words) for name, words in given.items()}
    used = [word for word in WORDS if any(count[word] for count in counts.values())]
    rows: tuple[tuple[Entry, ...], ...] = tuple(
        (label(name), *(count[word] for word in used)) for name, count in counts.items()
    )
    return table(to_plain(Sheet("Verdicts by artifact", ("artifact", *used), rows)), "verdicts")


def _verdicts(entry: Mapping[str, Any]) -> list[str]:
    """Of the sheets that set the paper's value beside ours."""
    return [
        _word(row[sheet["columns"].index("verdict")])
        for sheet in entry.get("sheets", ())
        if {"quantity", "paper", "ours", "verdict"} <= set(sheet["columns"])
        for row in sheet["rows"]
    ]


def _word(said: str) -> str:
    """The verdict without the remark behind it."""
    return next(
        (word for word in sorted(WORDS, key=len, reverse=True) if said.startswith(word)), ""
    )


def otherwise(reader: ResultsReader) -> list[tuple[str, str]]:
    """(artifact, sentence) of everything that speaks against SpecFit, the paper or a claim."""
    found = []
    for name in SIDE_BY_SIDE:
        members = _members(reader, name)
        if members:
            runs = {m.system: m.rows for m in reversed(members)}
            lines = _slower(runs) + _other_ids(runs)
            found += [(name, f"{members[0].workload.short}: {line}") for line in lines]
    for claim in CLAIMS:
        line = _against(claim, _members(reader, claim.artifact))
        if line:
            found.append((HOMES.get(claim.artifact, claim.artifact), line))
    found += [("table_figure_4", line) for line in trends_against(_members(reader, "figure_4"))]
    return found


def _members(reader: ResultsReader, suite: str) -> list[SuiteRun]:
    """None of a suite that has not run, which the artifact itself says."""
    try:
        return reader.members(suite)
    except SpecfitError:
        return []


def _against(claim: Claim, members: Sequence[SuiteRun]) -> str:
    """Where our ratio lies on the other side of 1, or is far worse than the paper's; else ""."""
    alike = pick(members, stands_for=claim.workload)
    if claim.artifact not in SIDE_BY_SIDE:
        alike = [m for m in alike if m.slots in (claim.slots, 0)]
    runs = {m.system: m.rows for m in reversed(alike)}
    ours = ours_of(claim, runs)
    if claim.against is None or ours is None or not ours.value:
        return ""
    said = verdict(claim, ours, runs[claim.system], control_of(claim, runs))
    worse = (claim.value / ours.value) ** QUANTITIES[claim.quantity].better
    if said != OTHER and not (said in COMPARED and worse > FAR):
        return ""
    both = f"ours {shown(claim, ours.value)}, the paper's {shown(claim, claim.value)} ({said})"
    return f"{alike[0].workload.short}: {describe(claim, runs[claim.system])}: {both}"


def _slower(runs: Mapping[str, RunRows]) -> list[str]:
    """Systems that SpecFit is not faster than."""
    lines = []
    for system in runs:
        if system not in SYSTEMS or system.startswith("specfit") or "specfit" not in runs:
            continue
        ratio = QUANTITIES["speed"].ratio(runs["specfit"], runs[system])
        if ratio.value is not None and (ratio.value < 1 or not is_clear(ratio)):
            relation = "is slower than" if is_clear(ratio) else "cannot be told apart from"
            words = words_of([runs["specfit"]])
            gain = f"{measured(ratio, factor).text} ({words})"
            lines.append(f"SpecFit {relation} {style_of(system).label}: {gain}")
    return lines


def _other_ids(runs: Mapping[str, RunRows]) -> list[str]:
    """Systems whose output ids are not AR's."""
    lines = []
    for system, run in runs.items():
        if system == "ar" or "ar" not in runs:
            continue
        said = ids_beside(run, runs["ar"])
        if said != "yes":
            lines.append(f"{style_of(system).label} gives AR's ids on {said}")
    return lines


# -- sections, artifacts, tables -------------------------------------------------------------------


def section(one: Section, index: Index, results: Path) -> Values:
    return {
        "name": one.name,
        "title": one.title,
        "about": one.about,
        "artifacts": [artifact(name, index[name], results, one.title) for name in one.names],
    }


def artifact(name: str, entry: Mapping[str, Any], results: Path, above: str) -> Values:
    """Complete, or with the sentence that says what is missing. A title stands once."""
    values: Values = {"name": name, "label": label(name), "title": "", "svgs": {}, "tables": []}
    if "missing" in entry:
        return values | {"title": name, "about": entry["about"], "missing": entry["missing"]}
    title = entry["title"]
    drawn = {
        "narrow" if file.endswith(NARROW) else "wide": results / entry["folder"] / file
        for file in sorted(entry["files"])
        if file.endswith(".svg")
    }
    if drawn:
        values["svgs"] = {
            look: inline(file.read_text(encoding="utf-8"), f"{name}-{look}", entry["alt"])
            for look, file in drawn.items()
        }
    else:
        values["tables"] = [
            part
            for at, sheet in enumerate(entry["sheets"])
            for part in fitted(sheet, f"{name}-{at}", (title, above))
        ]
    suites = [(f"suite-{entry['place']}-{one}", one) for one in entry["suites"]]
    return values | {
        "title": "" if title == above else title,
        "missing": "",
        "told": entry["told"],
        "commands": [*entry["suites"].values(), entry["command"]],
        "files": [f"{entry['folder']}/{file}" for file in entry["files"]],
        "runs": entry["runs"],
        "suites": suites,
    }


WITH_PREFILL = "with prefill"
DENSE = 8  # columns, of a table in small print


def fitted(sheet: Mapping[str, Any], name: str, above: Sequence[str]) -> list[Values]:
    """A table, and a second one, folded, of the columns that count prefill as well."""
    columns = sheet["columns"]
    apart = [at for at, word in enumerate(columns) if WITH_PREFILL in word]
    if not apart or len(columns) < 7:
        return [table(sheet, name, above)]
    rest = [at for at in range(len(columns)) if at not in apart]
    second = _columns(sheet, [0, *apart]) | {"title": f"{sheet['title']}, with prefill", "note": ""}
    return [
        table(_columns(sheet, rest), name, above),
        table(second, f"{name}-prefill") | {"folded": True},
    ]


def _columns(sheet: Mapping[str, Any], positions: Sequence[int]) -> Values:
    picked = {key: [sheet[key][at] for at in positions] for key in ("columns", "numeric")}
    return {**sheet, **picked, "rows": [[row[at] for at in positions] for row in sheet["rows"]]}


INTERVAL = re.compile(r"(?P<value>.+?) (?P<bounds>\[.*\])", re.DOTALL)


def table(sheet: Mapping[str, Any], name: str, above: Sequence[str] = ()) -> Values:
    """`name` is distinct on the page; the title is left out where it stands above already.

    A first cell that names a group of rows is one tall cell.
    """
    rows, heads = sheet["rows"], header_columns(sheet["rows"])
    spans = group_spans(rows) if heads > 1 and not sheet["numeric"][0] else [1] * len(rows)
    looks = {"pinned": heads == 1, "dense": len(sheet["columns"]) > DENSE}
    lines = []
    for row, span in zip(rows, spans, strict=True):
        cells = [
            cell(word, number, at < heads) | {"span": span if at == 0 else 1}
            for at, (word, number) in enumerate(zip(row, sheet["numeric"], strict=True))
        ]
        lines.append({"cells": cells if span else cells[1:], "starts": heads > 1 and span > 0})
    return {
        "name": name,
        "title": sheet["title"],
        "hide_title": sheet["title"] in above,
        "columns": list(zip(sheet["columns"], sheet["numeric"], strict=True)),
        "look": " ".join(look for look, has in looks.items() if has),
        "lines": lines,
        "note": sheet["note"],
        "folded": False,
    }


def header_columns(rows: Sequence[Sequence[str]]) -> int:
    """1, or 2 where the first cell names a group of rows."""
    grouped = any(above[0] == below[0] for above, below in itertools.pairwise(rows))
    return 2 if grouped and len(rows[0]) > 2 else 1


def group_spans(rows: Sequence[Sequence[str]]) -> list[int]:
    """For each row, how many rows its first cell is tall; 0 where the cell above reaches down."""
    spans = []
    for _, group in itertools.groupby(rows, key=lambda row: row[0]):
        count = len(list(group))
        spans += [count, *[0] * (count - 1)]
    return spans


def cell(word: str, number: bool, head: bool) -> Values:
    """A number's interval stands below it; a verdict is marked as one."""
    values = {"text": word, "bounds": "", "verdict": "", "number": number, "head": head}
    if not head and (named := _word(word)):
        return values | {"verdict": named.replace(" ", "-")}
    found = INTERVAL.fullmatch(word) if number and not head else None
    if found is None:
        return values
    return values | {"text": found["value"], "bounds": found["bounds"]}


# -- runs ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """A suite that something on the page was drawn from."""

    found: Found

    @cached_property
    def manifests(self) -> list[Manifest | None]:
        """One a cell; None for a benchmark's file."""
        return [read_manifest(cell.path(self.found.place)) for cell in self.found.suite.cells]


def sources_of(reader: ResultsReader, entries: Iterable[Mapping[str, Any]]) -> list[Source]:
    """Each suite once for each place (live or reference) that rows of it were taken from."""
    sources: dict[tuple[str, str], Source] = {}
    for entry in entries:
        for found in reader.suites(*entry["suites"]) if entry.get("suites") else ():
            sources.setdefault((found.suite.artifact, found.place.name), Source(found))
    return list(sources.values())


def manifests_of(sources: Iterable[Source]) -> list[Manifest]:
    """Of every run and replay, once though several suites name it."""
    manifests = {
        cell.path(source.found.place): manifest
        for source in sources
        for cell, manifest in zip(source.found.suite.cells, source.manifests, strict=True)
        if manifest is not None
    }
    return list(manifests.values())


COLUMNS = ("cell", "kind", "id", "override line", "requests", "clock", "profile", "device")


def suite(source: Source) -> Values:
    """The runs of a suite, and the command that makes them."""
    found = source.found
    rows = tuple(map(_run, found.suite.cells, source.manifests))
    name = f"suite-{found.word}-{found.suite.artifact}"
    sheet = Sheet(f"Suite {found.suite.artifact}, {found.word} rows", COLUMNS, rows)
    return {
        "name": name,
        "summary": f"{found.suite.artifact}: {len(rows)} cells, {found.word} rows",
        "command": found.suite.command,
        "table": table(to_plain(sheet), f"{name}-cells"),
    }


def _run(cell: SuiteCell, manifest: Manifest | None) -> tuple[Entry, ...]:
    name = cell.label + (f", repeat {cell.repeat}" if cell.repeat else "")
    first = (name, cell.kind, cell.id, cell.overrides)
    if manifest is None:
        return *first, Cell("-"), "-", "-", "-"
    info = manifest.info
    return *first, len(manifest.request_ids), info.clock, info.profile, info.device
