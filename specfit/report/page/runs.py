"""The last part of the page: which runs, from which command line, on what."""

from __future__ import annotations

from collections.abc import Sequence

from specfit.report.artifacts.setup import versions_sheet
from specfit.report.page.gathering import Source, manifests_of
from specfit.report.page.tables import table
from specfit.report.page.tags import Html, code, folded, join, tag, text
from specfit.report.table_format import Cell, Entry, Sheet, to_plain
from specfit.storage.manifest import Manifest
from specfit.storage.suite import Cell as SuiteCell

COLUMNS = ("cell", "kind", "id", "override line", "requests", "clock", "profile", "device")


def provenance(sources: Sequence[Source]) -> Html:
    """Code and machine of every row on the page, then each suite's runs."""
    made = to_plain(versions_sheet(manifests_of(sources)))
    return join(table(made, "code-and-machine", "h3"), *map(_suite, sources))


def _suite(source: Source) -> Html:
    found = source.found
    rows = tuple(map(_row, found.suite.cells, source.manifests))
    sheet = Sheet(f"Suite {found.suite.artefact}, {found.word} rows", COLUMNS, rows)
    name = f"suite-{found.word}-{found.suite.artefact}"
    summary = f"{found.suite.artefact}: {len(rows)} cells, {found.word} rows"
    command = tag("p", text("Made by "), code(found.suite.command), text("."))
    cells = table(to_plain(sheet), f"{name}-cells", "h3")
    return tag("div", folded(summary, command, cells), id=name)


def _row(cell: SuiteCell, manifest: Manifest | None) -> tuple[Entry, ...]:
    label = cell.label + (f", repeat {cell.repeat}" if cell.repeat else "")
    first = (label, cell.kind, cell.id, cell.overrides)
    if manifest is None:
        return *first, Cell("-"), "-", "-", "-"
    info = manifest.info
    return *first, len(manifest.request_ids), info.clock, info.profile, info.device
