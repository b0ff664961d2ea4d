"""Every table and figure from the rows that are there, in one process.

    python scripts/draw.py [table_2 figure_4 ..] [--tables] [--results results] [overrides]

Each is made in memory first and written whole. One whose rows are missing is not written; what
makes them is printed, once each, and the exit code is 2. `results/artifacts.json` lists what there
is and what is missing, for the report. The committed tables are those of the committed rows:
--tables --results results/reference.
"""

from __future__ import annotations

import sys

from specfit.base.entry import needs_extras, script

with needs_extras():
    from specfit.report.artifact import options_of, reader_of, variant_words
    from specfit.report.draw import draw, names_of, split_names


def main(argv: list[str] | None = None) -> int:
    parser = options_of(__doc__)
    parser.add_argument("--tables", action="store_true", help="no figures (and no matplotlib)")
    parser.add_argument("--only", nargs="+", default=[], help="the same as names alone")
    options = parser.parse_intermixed_args(argv)
    named, options.arguments = split_names(options.arguments)
    names = names_of(options.tables, [*options.only, *named], options.results)
    reader, out = reader_of(options)
    return draw(reader, out, names, variant_words(options), index=not options.tables)


if __name__ == "__main__":
    sys.exit(script(main))
