"""results/report.html: every table and figure on one page, with its runs and the paper's values.

    python scripts/report.py [--results results] [--size preview] [--as-drawn] [overrides]

Draws every artifact first, as scripts/draw.py does; --as-drawn takes them as that left them.
The page is one file and needs no network. Where an artifact is missing, the page says which command
makes its rows, and the exit code is 2.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specfit.base.entry import needs_extras, script

with needs_extras():
    from specfit.report import draw
    from specfit.report.artifact import options_of, reader_of, variant_words
    from specfit.report.page.context import render
    from specfit.storage import atomic

REPORT = "report.html"


def main(argv: list[str] | None = None) -> int:
    parser = options_of(__doc__)
    parser.add_argument("--as-drawn", action="store_true", help="draw nothing again")
    options = parser.parse_args(argv)
    reader, out = reader_of(options)
    if not options.as_drawn:
        draw.draw(reader, out, draw.names_of(results=reader.results), variant_words(options))
    index = listed(out, reader.results)
    page, unexplained = render(index, out, reader)
    atomic.write_text(out / REPORT, page)
    print(f"wrote {out / REPORT}")
    lacking = [name for name, entry in index.items() if "missing" in entry]
    if lacking:
        print(f"specfit: the report lacks {', '.join(lacking)}", file=sys.stderr)
    return 2 if lacking or unexplained else 0


def listed(out: Path, results: Path) -> dict[str, Mapping[str, Any]]:
    """The index, each artifact in it: one whose files are not there is missing like any other."""
    path = out / draw.INDEX
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    found: dict[str, Mapping[str, Any]] = {}
    for name in draw.names_of(results=results):
        entry = known.get(name, {})
        paths = [out / entry.get("folder", "") / file for file in entry.get("files", ())]
        if "missing" not in entry and not (paths and all(path.is_file() for path in paths)):
            found[name] = {
                "about": "",
                "missing": "it was not drawn; first: make figures",
            }
        else:
            found[name] = entry
    return found


if __name__ == "__main__":
    sys.exit(script(main))
