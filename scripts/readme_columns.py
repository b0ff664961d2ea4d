"""Rewrite README.md's dictionary of counters from specfit.storage.tables.

    python scripts/readme_columns.py

What stands between the two markers is generated; a test fails where it is out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path

from specfit.base.entry import needs_extras, script

with needs_extras():
    from specfit.storage.tables import FILES

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN, END = "<!-- columns: python scripts/readme_columns.py -->", "<!-- end of columns -->"


def dictionary() -> str:
    """One Markdown table per row file."""
    return "\n\n".join(_table(name) for name in FILES)


def _table(name: str) -> str:
    layout = FILES[name]
    lines = [f"`{name}`: {layout.grain[0].lower()}{layout.grain[1:]}", ""]
    lines += ["| column | type | meaning |", "| --- | --- | --- |"]
    for column in layout.columns:
        kind = str(column.type).replace("list<element: int64>", "list of int64")
        kind = kind.replace("list<item: int64>", "list of int64")
        lines.append(f"| `{column.name}` | {kind}{' or null' * column.nullable} | {column.text} |")
    return "\n".join(lines)


def filled(text: str, begin: str, end: str, body: str) -> str:
    """`text` with the block between the markers made anew."""
    before, rest = text.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{body}\n{end}{after}"


def rewritten(text: str) -> str:
    return filled(text, BEGIN, END, dictionary())


def main() -> int:
    README.write_text(rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(script(main))
