"""What `make reproduce` leaves for drawing: which run is which cell, and where its rows are.

results/suites/<artifact>.json            every cell: label, kind, override line, id
results/suites/<variant>/<artifact>.json  the same for another size or for other overrides
results/reference/...                     committed rows in a pack (storage/pack.py), and suites

`find_suite("table_2")` reads that, not Hydra: an artifact is drawn wholly from the live folders
when they hold everything it needs, else wholly from the reference rows, else not at all.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from specfit.base.types import SpecfitError
from specfit.storage.atomic import write_json
from specfit.storage.manifest import read_manifest
from specfit.storage.pack import study_text
from specfit.storage.rows import RunRows, load_run

FULL = "full"
CYCLES, SUMS = "cycles", "sums"
REFERENCE = "reference"
STORED_NAME = "artefact"  # in a suite's file, where every name stays what it was
# Kind of a cell -> where what it left lies below `results` (or `results/reference`).
PLACES = {"run": "runs/{id}", "replay": "replays/{id}", "bench": "bench/{id}.json"}


@dataclass(frozen=True)
class Cell:
    """One run of a suite. `label` is its names joined by "/", as in "gsm8k/specfit/48"."""

    label: str
    kind: str  # run, replay, or bench: a JSON file of a study
    overrides: str  # the line after `python -m specfit.run`; of a bench, its options
    id: str  # run id (a replay has that of the run it stands for), or a bench file's stem
    repeat: int = 0

    def __post_init__(self) -> None:
        assert self.kind in PLACES, f"a cell is a {', '.join(PLACES)}, not a {self.kind}"

    def path(self, results: Path) -> Path:
        """A run folder for `load_run`, or a JSON file."""
        return results / PLACES[self.kind].format(id=self.id)

    def is_there(self, results: Path) -> bool:
        path = self.path(results)
        if self.kind == "bench":
            return study_text(path) is not None
        manifest = read_manifest(path)
        return manifest is not None and manifest.finished


@dataclass(frozen=True)
class Suite:
    """The cells of one artifact. Labels are distinct within a repeat."""

    artifact: str
    size: str  # full, preview or smoke
    arguments: tuple[str, ...]  # overrides that took the place of the suite's own
    cells: tuple[Cell, ...]
    keeps: str = CYCLES  # what is committed of its runs: cycles, or sums of each request

    def __post_init__(self) -> None:
        names = [(cell.label, cell.repeat) for cell in self.cells]
        assert len(set(names)) == len(names), "labels are distinct within a repeat"

    @property
    def variant(self) -> str:
        return variant_of(self.size, self.arguments)

    @property
    def command(self) -> str:
        """What makes it."""
        repeats = 1 + max((cell.repeat for cell in self.cells), default=0)
        options = [
            *([f"SIZE={self.size}"] if self.size != FULL else []),
            *([f"REPEATS={repeats}"] if repeats > 1 else []),
            *([f'ARGS="{" ".join(self.arguments)}"'] if self.arguments else []),
        ]
        return " ".join([f"make reproduce SUITE={self.artifact}", *options])

    def missing(self, results: Path) -> list[Cell]:
        return [cell for cell in self.cells if not cell.is_there(results)]

    def write(self, results: Path) -> Path:
        path = suite_path(results, self.artifact, self.variant)
        path.parent.mkdir(parents=True, exist_ok=True)
        values = asdict(self)
        stored = {STORED_NAME: values.pop("artifact")} | values
        write_json(path, stored | {"command": self.command})
        return path


def variant_of(size: str = FULL, arguments: Sequence[str] = ()) -> str:
    """Folder of a suite's file, and of what is drawn from it: "" at full size as shipped.

    Other models and previews never replace the shipped suite's file. A readable piece and a hash:
    overrides may hold paths.
    """
    if not arguments:
        return "" if size == FULL else size
    text = " ".join(sorted(arguments))
    readable = re.sub(r"[^A-Za-z0-9.-]+", "_", text)[:48].strip("_")
    hashed = hashlib.sha256(text.encode()).hexdigest()[:8]
    return "-".join([*([] if size == FULL else [size]), readable, hashed])


def suite_path(results: Path, artifact: str, variant: str = "") -> Path:
    return results / "suites" / variant / f"{artifact}.json"


def read_suite(results: Path, artifact: str, variant: str = "") -> Suite | None:
    """None where there is none. Raises SpecfitError for a file that is no suite."""
    path = suite_path(results, artifact, variant)
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        cells = tuple(Cell(**cell) for cell in raw["cells"])
        keeps = raw.get("keeps", CYCLES)
        return Suite(raw[STORED_NAME], raw["size"], tuple(raw["arguments"]), cells, keeps)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise SpecfitError(
            f"{path} is no suite ({error!r}); remove it, then make reproduce SUITE={artifact}"
        ) from None


@dataclass(frozen=True)
class Found:
    """A suite whose every cell is there, in one place: nothing is drawn from two."""

    suite: Suite
    place: Path  # `results`, or results/reference
    lacking: tuple[Cell, ...] = ()  # why not the live folders; empty where it is those

    @property
    def is_reference(self) -> bool:
        return self.place.name == REFERENCE

    @property
    def word(self) -> str:
        """What rows from there are called."""
        return "reference" if self.is_reference else "live"

    @property
    def is_preview(self) -> bool:
        """Whether what is drawn carries the word preview."""
        return self.suite.size != FULL

    @cached_property
    def _cells(self) -> Mapping[tuple[str, int], Cell]:
        return {(cell.label, cell.repeat): cell for cell in self.suite.cells}

    @property
    def labels(self) -> list[str]:
        """In the suite's order."""
        return list(dict.fromkeys(cell.label for cell in self.suite.cells))

    @property
    def run_ids(self) -> list[str]:
        """Of runs and replays, in order, each once."""
        return list(dict.fromkeys(c.id for c in self.suite.cells if c.kind != "bench"))

    def cell(self, label: str, repeat: int = 0) -> Cell:
        if (label, repeat) not in self._cells:
            raise SpecfitError(
                f"suite {self.suite.artifact} has no cell {label}; it has {', '.join(self.labels)}"
            )
        return self._cells[label, repeat]

    def path(self, label: str, repeat: int = 0) -> Path:
        return self.cell(label, repeat).path(self.place)

    def rows(self, label: str, repeat: int = 0) -> RunRows:
        """Of a run or a replay."""
        return load_run(self.path(label, repeat))

    def repeats(self, label: str) -> list[RunRows]:
        """Every repeat of a cell, for `results.repeats.spread`."""
        return [self.rows(label, r) for name, r in self._cells if name == label]

    def document(self, label: str) -> dict[str, Any]:
        """What a bench cell's study left."""
        text = study_text(self.path(label))
        assert text is not None, "a suite that is found has every document"
        found: dict[str, Any] = json.loads(text)
        return found


def find_suite(artifact: str, results: Path = Path("results"), variant: str = "") -> Found:
    """Where an artifact's rows are. Raises SpecfitError with the command that is missing."""
    reference = results / REFERENCE
    live, packed = (read_suite(place, artifact, variant) for place in (results, reference))
    wanted = live or packed
    if wanted is None:
        raise SpecfitError(
            f"no run of suite {artifact} is known: {suite_path(results, artifact, variant)} is "
            f"not there; first: make reproduce SUITE={artifact}"
        )
    lacking = wanted.missing(results)
    if not lacking:
        return Found(wanted, results)
    if packed is not None and not packed.missing(reference):
        return Found(packed, reference, tuple(lacking))
    raise SpecfitError(
        f"{wanted.artifact} needs {len(wanted.cells)} runs and {len(lacking)} are missing, the "
        f"first {lacking[0].label} ({lacking[0].id}); first: {wanted.command}"
    )
