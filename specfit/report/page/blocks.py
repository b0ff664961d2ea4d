"""One artefact on the page: what it is, its table or figure, where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specfit.report.page.figures import inline
from specfit.report.page.tables import table
from specfit.report.page.tags import Html, code, folded, join, link, paragraph, tag, text

Entry = Mapping[str, Any]  # of artefacts.json


def block(name: str, entry: Entry, results: Path) -> Html:
    """Complete, or the sentence that says what is missing."""
    if "missing" in entry:
        told = paragraph(f"Not drawn. {entry['missing']}.", class_="missing")
        return tag("article", _head(name, name, entry), told, id=name)
    drawn = [results / entry["folder"] / f for f in entry["files"] if f.endswith(".svg")]
    shown = _figure(name, entry, drawn[0]) if drawn else _tables(name, entry)
    stamp = paragraph(" ".join(entry["told"]), class_="stamp")
    return tag("article", _head(name, entry["title"], entry), shown, stamp, _source(entry), id=name)


def _head(name: str, title: str, entry: Entry) -> Html:
    return join(tag("h3", text(title)), paragraph(entry["about"], class_="about"))


def _figure(name: str, entry: Entry, path: Path) -> Html:
    return tag("figure", inline(path.read_text(encoding="utf-8"), name, entry["alt"]))


def _tables(name: str, entry: Entry) -> Html:
    return join(*(table(s, f"{name}-{at}") for at, s in enumerate(entry["sheets"])))


def _source(entry: Entry) -> Html:
    """The commands that make it again, its files, its runs."""
    steps = join(*map(code, entry["suites"].values()), code(entry["command"]), by=Html(", then "))
    lines = [tag("p", text("Made by "), steps, text("."))]
    files = [code(f"{entry['folder']}/{file}") for file in entry["files"]]
    lines.append(tag("p", text("Files: "), join(*files, by=", "), text(".")))
    if entry["runs"]:
        suites = [link(f"suite-{entry['place']}-{name}", name) for name in entry["suites"]]
        listed = join(text(f"{len(entry['runs'])} runs of "), *suites, by=" ")
        lines.append(tag("p", listed, text(": "), code(" ".join(entry["runs"]))))
    return folded("Command, files, runs", *lines)
