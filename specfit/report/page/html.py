"""results/report.html as one string: no file beside it, no network, the same bytes each time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from specfit.report.page.blocks import block
from specfit.report.page.gathering import Explained, Source
from specfit.report.page.opening import Index, explained, reading, summary, verdicts
from specfit.report.page.outline import Section, label, sections_of
from specfit.report.page.runs import provenance
from specfit.report.page.tags import Html, join, link, paragraph, tag, text

STYLE = Path(__file__).parent / "style.css"
TITLE = "specfit: tables and figures"
ABOUT = (
    "Our numbers on this page are computed from rows of runs, by the command beside them. specfit "
    "is an independent implementation, written from a description of the method (arXiv "
    "2610.15417); the paper's values stand beside ours."
)


def page(
    index: Index,
    results: Path,
    sources: Sequence[Source],
    why: Sequence[Explained],
    unexplained: Sequence[str],
) -> str:
    """`results` holds the files that the index names; `unexplained` says what is missing."""
    sections = sections_of(index)
    drawn = [
        tag(
            "section",
            tag("h2", text(section.title)),
            paragraph(section.about),
            *(block(name, index[name], results) for name in section.names),
            id=section.name,
        )
        for section in sections
    ]
    first = tag(
        "section",
        tag("h2", text("In short")),
        summary(index, sources),
        reading(),
        verdicts(index),
        id="short",
    )
    causes = tag(
        "section",
        tag("h2", text("Why one system is faster")),
        explained(why, unexplained),
        id="why",
    )
    runs = tag("section", tag("h2", text("Runs")), provenance(sources), id="runs")
    main = tag("main", first, causes, *drawn, runs)
    header = tag("header", tag("h1", text(TITLE)), paragraph(ABOUT))
    return document(join(header, contents(sections), main))


def contents(sections: Sequence[Section]) -> Html:
    """Every section, and below it every artefact."""
    listed = [_entry("short", "In short"), _entry("why", "Why one system is faster")]
    for section in sections:
        inner = [_entry(name, label(name)) for name in section.names]
        listed.append(tag("li", link(section.name, section.title), tag("ul", *inner)))
    listed.append(_entry("runs", "Runs"))
    return tag("nav", tag("ol", *listed), aria_label="Contents")


def _entry(name: str, words: str) -> Html:
    return tag("li", link(name, words))


def document(body: Html) -> str:
    head = join(
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", text(TITLE)),
        tag("style", Html("\n" + STYLE.read_text(encoding="utf-8"))),
    )
    whole = tag("html", tag("head", head), tag("body", body), lang="en")
    return f"<!doctype html>\n{whole}\n"
