"""Every table and figure from the rows that are there, in one process.

    python scripts/artefacts.py [--tables] [--only table_2 ..] [--results results] [overrides]

Each is made in memory first and written whole. One whose rows are missing is not written; what
makes them is printed, once each, and the exit code is 2. `results/artefacts.json` lists what there
is and what is missing, for the report. The committed tables are those of the committed rows:
--tables --results results/reference.
"""

from __future__ import annotations

import importlib.util
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

SCRIPTS = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPTS))  # figure scripts share scripts/drawing

from specfit.base.types import SpecfitError  # noqa: E402
from specfit.report.artifact import (  # noqa: E402
    Artefact,
    desk_of,
    options_of,
    variant_words,
    write,
)
from specfit.report.reader import ResultsReader  # noqa: E402
from specfit.report.table_format import to_plain  # noqa: E402
from specfit.storage import atomic  # noqa: E402

TABLES, FIGURES = "table_*.py", "figure_*.py"
INDEX = "artefacts.json"


def scripts_of(tables_only: bool = False, only: Sequence[str] = ()) -> list[Path]:
    """Raises SpecfitError for a name that no script has."""
    patterns = (TABLES,) if tables_only else (TABLES, FIGURES)
    paths = [path for pattern in patterns for path in sorted(SCRIPTS.glob(pattern))]
    known = {path.stem for path in paths}
    for name in only:
        if name not in known:
            raise SpecfitError(f"no script makes {name}; there is {', '.join(sorted(known))}")
    if only:
        return [path for path in paths if path.stem in only]
    return paths


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Made:
    """By script's name: the artefact and what its script says it is, or why it is missing."""

    artefacts: Mapping[str, Artefact]
    about: Mapping[str, str]
    missing: Mapping[str, str]


def make_all(reader: ResultsReader, paths: Sequence[Path]) -> Made:
    made: dict[str, Artefact] = {}
    about, missing = {}, {}
    for path in paths:
        script = load(path)
        about[path.stem] = (script.__doc__ or "").partition("\n")[0]
        try:
            made[path.stem] = script.make(reader)
        except SpecfitError as error:
            missing[path.stem] = str(error)
    return Made(made, about, missing)


def index_of(
    made: Made, reader: ResultsReader, arguments: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """What the report shows beside the files. `arguments` are those of this call, as in --size."""
    listed = {}
    for name, about in made.about.items():
        command = shlex.join(["python", f"scripts/{name}.py", *arguments])
        listed[name] = {"about": about, "command": command}
        if name in made.missing:
            listed[name] |= {"missing": made.missing[name]}
        else:
            listed[name] |= entry_of(made.artefacts[name], reader)
    return listed


def entry_of(one: Artefact, reader: ResultsReader) -> dict[str, Any]:
    assert one.stamp.suites, f"{one.name}: its stamp names the suites it was drawn from"
    sources = reader.suites(*one.stamp.suites)
    return {
        "folder": one.folder,
        "title": one.stamp.titled(one.title),
        "files": sorted(one.files),
        "told": [*getattr(one, "notes", ()), *one.stamp.lines],
        "runs": list(one.stamp.run_ids),
        "suites": {found.suite.artefact: found.suite.command for found in sources},
        "place": sources[0].word,
        "alt": getattr(one, "alt", ""),
        "sheets": [to_plain(sheet) for sheet in getattr(one, "sheets", {}).values()],
    }


def write_index(listed: dict[str, dict[str, Any]], out: Path) -> Path:
    """Adds these to what an earlier call listed."""
    path = out / INDEX
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    known |= listed
    atomic.write_json(path, {name: known[name] for name in sorted(known)})
    return path


def tell(made: Made, paths: Sequence[Path]) -> int:
    """What was written, and on stderr what is missing. Exit code."""
    print("\n".join(f"wrote {path}" for path in paths))
    for sentence in dict.fromkeys(made.missing.values()):
        names = ", ".join(name for name, said in made.missing.items() if said == sentence)
        print(f"specfit: {names}: {sentence}", file=sys.stderr)
    return 2 if made.missing else 0


def draw(
    reader: ResultsReader,
    out: Path,
    paths: Sequence[Path],
    arguments: Sequence[str] = (),
    index: bool = True,
) -> int:
    """Makes, writes and lists what these scripts make; says what is missing. Exit code."""
    made = make_all(reader, paths)
    written = write(list(made.artefacts.values()), out)
    if index:
        written.append(write_index(index_of(made, reader, arguments), out))
    return tell(made, written)


def main(argv: list[str] | None = None) -> int:
    parser = options_of(__doc__)
    parser.add_argument("--tables", action="store_true", help="no figures (and no matplotlib)")
    parser.add_argument("--only", nargs="+", default=[], help="names, as in table_2 figure_4")
    options = parser.parse_args(argv)
    reader, out = desk_of(options)
    try:
        paths = scripts_of(options.tables, options.only)
    except SpecfitError as error:
        print(f"specfit: {error}", file=sys.stderr)
        return 2
    return draw(reader, out, paths, variant_words(options), index=not options.tables)


if __name__ == "__main__":
    sys.exit(main())
