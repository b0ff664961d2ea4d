"""The top of the page: what was run, what it says beside the paper, how to read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from specfit.report.explained import numbers, sentence
from specfit.report.page.gathering import Explained, Source, manifests_of
from specfit.report.page.outline import label
from specfit.report.page.tables import table
from specfit.report.page.tags import Html, code, folded, join, link, paragraph, tag, text
from specfit.report.table_format import Entry, Sheet, to_plain
from specfit.report.verdict import MEANING, OTHER, PAPER_TARGETS, WORDS

Index = Mapping[str, Mapping[str, Any]]
CLOCKS = {
    "modelled": "times are modelled: computed from a profile, nothing measured enters them",
    "wall": "times are measured",
}


def summary(index: Index, sources: Sequence[Source]) -> Html:
    """What there is, what it ran on, and what may be said of it."""
    infos = [manifest.info for manifest in manifests_of(sources)]
    missing = [name for name, entry in index.items() if "missing" in entry]
    lines = [f"{len(index) - len(missing)} tables and figures from {len(infos)} runs and replays."]
    if infos:
        clocks = "; ".join(f"{c} ({CLOCKS[c]})" for c in dict.fromkeys(i.clock for i in infos))
        lines.append(
            f"Models: {_each(i.model for i in infos)}. Workloads: "
            f"{_each(i.dataset for i in infos)}. Profiles: {_each(i.profile for i in infos)}. "
            f"Devices: {_each(i.device for i in infos)}. Clock: {clocks}."
        )
    if not any(i.model in PAPER_TARGETS and i.clock == "wall" for i in infos):
        lines.append(
            "Nothing here ran on the paper's models against a wall clock: no number of the paper "
            "is reproduced or refuted on this page. Directions can be compared."
        )
    parts = [paragraph(line) for line in lines]
    if missing:
        named = join(*(link(name, label(name)) for name in missing), by=", ")
        parts.append(tag("p", text("Missing: "), named, text("."), class_="missing"))
    return join(*parts)


def _each(values: Any) -> str:
    return ", ".join(dict.fromkeys(str(value) for value in values))


# -- verdicts --------------------------------------------------------------------------------------


def verdicts(index: Index) -> Html:
    """How often each word was given, by artefact; then every claim that went the other way."""
    given = {name: found for name, entry in index.items() if (found := _claims(entry))}
    if not given:
        return Html("")
    counts = {name: Counter(row["verdict"] for row in rows) for name, rows in given.items()}
    used = [word for word in WORDS if any(count[word] for count in counts.values())]
    rows: tuple[tuple[Entry, ...], ...] = tuple(
        (label(name), *(count[word] for word in used)) for name, count in counts.items()
    )
    sheet = Sheet("Verdicts by artefact", ("artefact", *used), rows)
    apart = [
        tag("li", link(name, label(name)), text(": {quantity}: {paper}, ours {ours}".format(**row)))
        for name, rows in given.items()
        for row in rows
        if row["verdict"] == OTHER
    ]
    told = tag("ul", *apart) if apart else paragraph("None.")
    return join(
        table(to_plain(sheet), "verdicts-counted", "h3"),
        tag("h3", text("What went the other way")),
        told,
    )


def _claims(entry: Mapping[str, Any]) -> list[dict[str, str]]:
    """Rows of the sheets that set the paper's value beside ours."""
    return [
        dict(zip(sheet["columns"], row, strict=True))
        for sheet in entry.get("sheets", ())
        if {"quantity", "paper", "ours", "verdict"} <= set(sheet["columns"])
        for row in sheet["rows"]
    ]


def reading() -> Html:
    """What the words mean."""
    words = [
        part
        for word, meaning in MEANING.items()
        for part in (tag("dt", text(word)), tag("dd", text(meaning)))
    ]
    return folded(
        "How to read numbers and verdicts",
        paragraph(
            "Brackets are 95 % intervals, by a bootstrap over requests; ratios are paired by "
            "request. A speed is committed tokens over time, prefill left out unless it is named. "
            "A modelled time says so. A dash means that there is no such number."
        ),
        tag("dl", *words),
    )


# -- explanations ----------------------------------------------------------------------------------


def explained(found: Sequence[Explained], missing: Sequence[str]) -> Html:
    """A sentence for each pair, the numbers behind it folded away."""
    parts: list[Html] = []
    before = None
    for one in found:
        if one.title != before:
            parts.append(tag("h3", text(one.title)))
        before = one.title
        shown = tag("pre", text(numbers(one.why)), tabindex="0")
        parts.append(paragraph(sentence(one.why)))
        parts.append(folded("In numbers", tag("p", code(one.command)), shown))
    parts += [paragraph(f"Not explained. {said}.", class_="missing") for said in missing]
    return join(*parts)
