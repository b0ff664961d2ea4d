"""Rewrite README.md's table of results from the rows of tables 2 and 3.

    python scripts/document/results.py [--results results/reference]

What stands between the two markers is generated; a test fails where it is out of date.
"""

from __future__ import annotations

import sys

from specfit.base.entry import needs_extras, script

with needs_extras():
    from scripts.document.device import README
    from specfit.report.artifact import options_of, reader_of
    from specfit.report.artifacts.front import readme_table
    from specfit.report.reader import ResultsReader

BEGIN, END = "<!-- results: python scripts/document/results.py -->", "<!-- end of results -->"


def rewritten(text: str, reader: ResultsReader) -> str:
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{readme_table(reader)}\n{END}{after}"


def main(argv: list[str] | None = None) -> int:
    reader, _ = reader_of(options_of(__doc__).parse_args(argv))
    README.write_text(rewritten(README.read_text(encoding="utf-8"), reader), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(script(main))
