"""Makes artifacts in memory, writes them whole, and lists what there is for the report."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specfit.base.types import SpecfitError
from specfit.report.artifact import Artifact, write
from specfit.report.artifacts import FIGURES, TABLES, UNCOMMITTED
from specfit.report.reader import ResultsReader
from specfit.report.table_format import to_plain
from specfit.storage import atomic
from specfit.storage.suite import REFERENCE, read_suite

INDEX = "artifacts.json"


def names_of(
    tables_only: bool = False, only: Sequence[str] = (), results: Path | None = None
) -> list[str]:
    """The artifacts called `only`, or all; of `results`, without those whose suite never ran.

    Raises SpecfitError for a name that nothing is called.
    """
    known = [*sorted(TABLES), *([] if tables_only else sorted(FIGURES))]
    for name in only:
        if name not in known:
            raise SpecfitError(f"no artifact is called {name}; there is {', '.join(known)}")
    if only:
        return [name for name in known if name in only]
    return [name for name in known if results is None or not _never_ran(name, results)]


def _never_ran(name: str, results: Path) -> bool:
    suite = UNCOMMITTED.get(name)
    places = (results, results / REFERENCE)
    return suite is not None and not any(read_suite(place, suite) for place in places)


def split_names(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names of artifacts, and overrides (`key=value`, as of `make reproduce ARGS=..`).

    Raises SpecfitError for a word that is neither.
    """
    names = [word for word in words if word in TABLES or word in FIGURES]
    overrides = [word for word in words if "=" in word or word.startswith("~")]
    unknown = [word for word in words if word not in names and word not in overrides]
    if unknown:
        names_of(only=unknown)  # raises
    return names, overrides


@dataclass(frozen=True)
class Made:
    """By name: the artifact and what it is, or why it is missing."""

    artifacts: Mapping[str, Artifact]
    about: Mapping[str, str]
    missing: Mapping[str, str]


def make_all(reader: ResultsReader, names: Iterable[str]) -> Made:
    made: dict[str, Artifact] = {}
    about, missing = {}, {}
    for name in names:
        make = TABLES.get(name) or FIGURES[name]
        about[name] = (make.__doc__ or "").partition("\n")[0]
        try:
            made[name] = make(reader)
        except SpecfitError as error:
            missing[name] = str(error)
    return Made(made, about, missing)


def index_of(
    made: Made, reader: ResultsReader, arguments: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """What the report shows beside the files. `arguments` are those of this call, as in --size."""
    listed = {}
    for name, about in made.about.items():
        command = shlex.join(["python", "scripts/draw.py", "--only", name, *arguments])
        listed[name] = {"about": about, "command": command}
        if name in made.missing:
            listed[name] |= {"missing": made.missing[name]}
        else:
            listed[name] |= entry_of(made.artifacts[name], reader)
    return listed


def entry_of(one: Artifact, reader: ResultsReader) -> dict[str, Any]:
    assert one.stamp.suites, f"{one.name}: its stamp names the suites it was drawn from"
    sources = reader.suites(*one.stamp.suites)
    return {
        "folder": one.folder,
        "title": one.stamp.titled(one.title),
        "files": sorted(one.files),
        "told": [*getattr(one, "notes", ()), *one.stamp.lines],
        "runs": list(one.stamp.run_ids),
        "suites": {found.suite.artifact: found.suite.command for found in sources},
        "place": sources[0].word,
        "alt": getattr(one, "alt", ""),
        "sheets": [to_plain(sheet) for sheet in getattr(one, "sheets", {}).values()],
    }


def write_index(listed: dict[str, dict[str, Any]], out: Path) -> Path:
    """Adds these to what an earlier call listed."""
    out.mkdir(parents=True, exist_ok=True)
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
    names: Sequence[str],
    arguments: Sequence[str] = (),
    index: bool = True,
) -> int:
    """Makes, writes and lists these artifacts; says what is missing. Exit code."""
    made = make_all(reader, names)
    written = write(list(made.artifacts.values()), out)
    if index:
        written.append(write_index(index_of(made, reader, arguments), out))
    return tell(made, written)
