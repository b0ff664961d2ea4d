"""Every table and figure from the rows that are there, in one process.

    python scripts/draw.py [table_2 figure_4 ..] [--tables] [--results results] [overrides]
    python scripts/draw.py figure_1 --cycle results/bench/anatomy_<id>.json

Each is made in memory first and written whole. One whose rows are missing is not written; what
makes them is printed, once each, and the exit code is 2. `results/artifacts.json` lists what there
is and what is missing, for the report. The committed tables are those of the committed rows:
--tables --results results/reference.
"""

from __future__ import annotations

import sys
from pathlib import Path

from specfit.base.entry import needs_extras, script

with needs_extras():
    from specfit.report.artifact import options_of, reader_of, variant_words
    from specfit.report.draw import draw, names_of, split_names
    from specfit.storage import atomic

FRONT = "figure_front"
IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
"""The README's picture is the front figure of the repository's own results."""


def main(argv: list[str] | None = None) -> int:
    parser = options_of(__doc__)
    parser.add_argument("--tables", action="store_true", help="no figures (and no matplotlib)")
    parser.add_argument("--only", nargs="+", default=[], help="the same as names alone")
    parser.add_argument("--cycle", type=Path, help="figure 1 of this file of the study anatomy")
    options = parser.parse_intermixed_args(argv)
    named, options.arguments = split_names(options.arguments)
    names = names_of(options.tables, [*options.only, *named], options.results)
    reader, out = reader_of(options)
    reader.cycle = options.cycle
    code = draw(reader, out, names, variant_words(options), index=not options.tables)
    picture = out / "figures" / f"{FRONT}.png"
    is_plain = options.results.resolve() == IMAGES.parents[1] / "results" and not reader.variant
    if FRONT in names and is_plain and picture.is_file():
        IMAGES.mkdir(exist_ok=True)
        atomic.write_file(IMAGES / "front.png", lambda path: path.write_bytes(picture.read_bytes()))
    return code


if __name__ == "__main__":
    sys.exit(script(main))
