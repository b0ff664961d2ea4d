"""experiments/<artifact>.yaml: which runs an artifact needs, as overrides. The only lists of runs.

    common: gpu=paper_main cache_slots=48      # before every line of the file
    preview: limit=8                           # what makes it a preview; smoke: what makes it tiny
    smoke: limit=1 max_new_tokens=4
    repeats: 1                                 # each line as repeat=0, 1, ..; systems interleaved
    keeps: sums                                # committed of its runs: cycles, or sums a request
    sandwich: eagle3_cache again               # a block's first and last cell, one system twice
    turn: 5                                    # requests before a block's next run goes on
    groups:
      - kind: run                              # run, replay, or bench: a study's JSON file
        axes:                                  # a cell for every choice of one name per axis
          - {news: dataset=embedded_news}
          - {ar: selector=ar, specfit: selector=specfit}      # news/ar, news/specfit

A group may have its own common (added), preview and smoke (instead). A bench names its `study`,
the stem of the file it `writes`, and what it `reads` (run or replay: then its lines are those of
the run it reads, and {id} stands for that run). With a `sandwich`, a block (one choice of every
axis but the last) is run anew while those two cells of it are not equally fast (sandwich.py). With
a `turn` the runs of a block take turns, so that what the machine does in minutes it does to all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from specfit.base.types import SpecfitError
from specfit.storage.suite import CYCLES, FULL, PLACES, SUMS

FOLDER = Path("experiments")
SIZES = (FULL, "preview", "smoke")


@dataclass(frozen=True)
class Group:
    """Cells that differ along axes: one name and one piece of an override line per choice."""

    kind: str
    axes: tuple[dict[str, str], ...]
    smoke: str
    common: str = ""
    preview: str = ""
    study: str = ""  # of a bench: a name in specfit/workflows/studies
    writes: str = ""  # stem of the JSON file; may hold {id}
    reads: str = ""  # run, replay, or nothing
    turn: str = ""  # requests before the next run of a block goes on

    @property
    def is_configured(self) -> bool:
        """Whether its lines are those of a run; a bench that reads none has plain options."""
        return self.kind != "bench" or bool(self.reads)

    def sized(self, size: str) -> str:
        return {FULL: "", "preview": self.preview, "smoke": self.smoke}[size]


@dataclass(frozen=True)
class SuiteFile:
    artifact: str
    groups: tuple[Group, ...]
    repeats: int = 1
    keeps: str = SUMS
    sandwich: tuple[str, str] | None = None  # names on the last axis: the baseline, and it again


def suite_names(folder: Path = FOLDER) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.yaml"))


def read_suite_file(artifact: str, folder: Path = FOLDER) -> SuiteFile:
    """Raises SpecfitError, one sentence, for whatever the format above does not allow."""
    path = folder / f"{artifact}.yaml"
    if not path.is_file():
        known = ", ".join(suite_names(folder)) or "none"
        raise SpecfitError(f"there is no suite {artifact} in {folder}; there is {known}")
    try:
        raw: Any = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    except (OmegaConfBaseException, YAMLError) as error:
        raise SpecfitError(f"{path} is no YAML: {' '.join(str(error).split())}") from None
    return _Reader(path).suite(raw)


class _Reader:
    """One file's plain data to a SuiteFile, every refusal naming the file and the place in it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def suite(self, raw: Any) -> SuiteFile:
        known = {"common", "preview", "smoke", "repeats", "keeps", "sandwich", "turn", "groups"}
        self._keys(raw, "a suite", known, {"groups"})
        repeats, groups = raw.get("repeats", 1), raw["groups"]
        keeps = raw.get("keeps", SUMS)
        if keeps not in (CYCLES, SUMS):
            raise self._wrong(f"keeps is {keeps!r}; it is {CYCLES} or {SUMS}")
        if not isinstance(repeats, int) or repeats < 1:
            raise self._wrong(f"repeats is {repeats!r}; it is a number from 1 up")
        if not isinstance(groups, list) or not groups:
            raise self._wrong("groups is a list of at least one group")
        shared = {key: str(raw.get(key) or "") for key in ("common", "preview", "smoke")}
        shared["turn"] = str(raw.get("turn", ""))
        read = tuple(self._group(group, i, shared) for i, group in enumerate(groups, 1))
        labels = [label for group in read for label, _ in choices(group)]
        for label in labels:
            if labels.count(label) > 1:
                raise self._wrong(f"two cells are called {label}; names are distinct")
        return SuiteFile(self._path.stem, read, repeats, keeps, self._sandwich(raw, read))

    def _sandwich(self, raw: Any, groups: Sequence[Group]) -> tuple[str, str] | None:
        if "sandwich" not in raw:
            return None
        names = str(raw["sandwich"]).split()
        if len(names) != 2 or not any({*names} <= {*group.axes[-1]} for group in groups):
            raise self._wrong(
                f"sandwich is {raw['sandwich']!r}; it is two names of one group's last axis"
            )
        return names[0], names[1]

    def _group(self, raw: Any, number: int, shared: dict[str, str]) -> Group:
        where = f"group {number}"
        self._keys(raw, where, {item.name for item in fields(Group)}, {"kind", "axes"})
        kind, axes = raw["kind"], raw["axes"]
        if kind not in PLACES:
            raise self._wrong(f"{where} is of kind {kind!r}; use one of {', '.join(PLACES)}")
        if not isinstance(axes, list) or not all(isinstance(a, dict) and a for a in axes):
            raise self._wrong(f"axes of {where} is a list of mappings from a name to overrides")
        values = {key: str(value or "") for key, value in raw.items() if key != "axes"}
        if kind != "bench" or values.get("reads"):  # a study's own options share nothing with runs
            common = f"{shared['common']} {values.get('common', '')}".strip()
            values = shared | values | {"common": common}
        if not values.get("smoke"):
            raise self._wrong(f"{where} has no smoke size")
        named = tuple({str(k): str(v or "") for k, v in axis.items()} for axis in axes)
        group = Group(axes=named, **values)
        self._check(group, where)
        return group

    def _check(self, group: Group, where: str) -> None:
        for_bench = ("study", "writes", "reads")
        if group.kind == "bench" and not (group.study and group.writes):
            raise self._wrong(f"{where} is a bench; it needs a study and what it writes")
        if group.kind != "bench" and any(getattr(group, name) for name in for_bench):
            raise self._wrong(f"{where} is a {group.kind}; {', '.join(for_bench)} are of a bench")
        if group.turn and not (group.turn.isdigit() and int(group.turn)):
            raise self._wrong(f"turn of {where} is {group.turn!r}; it is a number of requests")
        if group.reads not in ("", "run", "replay"):
            raise self._wrong(f"{where} reads {group.reads!r}; it is run or replay")
        if not group.is_configured:
            return
        for label, line in choices(group):
            for item in [*line, *group.preview.split(), *group.smoke.split()]:
                if "=" not in item:
                    raise self._wrong(f"cell {label} has {item!r}, which is not key=value")

    def _keys(self, raw: Any, where: str, known: set[str], needed: set[str]) -> None:
        if not isinstance(raw, dict):
            raise self._wrong(f"{where} is a mapping")
        for key in raw:
            if key not in known:
                raise self._wrong(f"unknown key {key} in {where}; use {', '.join(sorted(known))}")
        for key in sorted(needed - set(raw)):
            raise self._wrong(f"{where} lacks {key}")

    def _wrong(self, what: str) -> SpecfitError:
        return SpecfitError(f"{self._path}: {what}")


def choices(group: Group) -> Iterable[tuple[str, list[str]]]:
    """(label, override line) of every cell, at full size."""
    for chosen in product(*(axis.items() for axis in group.axes)):
        names = "/".join(name for name, _ in chosen)
        pieces = [group.common, *(line for _, line in chosen)]
        yield names, joined(*(piece.split() for piece in pieces))


def joined(*parts: Sequence[str]) -> list[str]:
    """Override lines as one: of one key the last value counts, since Hydra refuses some twice."""
    last: dict[str, str] = {}
    for item in (item for part in parts for item in part):
        last[key_of(item)] = item
    return list(last.values())


def key_of(override: str) -> str:
    return override.lstrip("+~").split("=")[0]
