"""Where texts come from: the embedded generators, a JSON-lines file, or the hub."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from specfit.core import SpecfitError
from specfit.workloads.corpus.news import report
from specfit.workloads.corpus.word_problems import word_problem

GSM8K_CALIBRATION_ROWS = 200
"""Of a GSM8K train file only the last rows calibrate: the embedded target was not trained on them."""


@dataclass(frozen=True)
class Example:
    """One row of a workload before it is tokenised: named text fields, or chat `messages`."""

    example_id: str
    fields: dict[str, Any]

    def digest_into(self, whole: Any) -> None:
        row = json.dumps([self.example_id, self.fields], sort_keys=True, ensure_ascii=False)
        whole.update(row.encode())


def digest(examples: Iterable[Example]) -> str:
    """Identity of the rows a run reads, 16 hex digits."""
    whole = hashlib.sha256()
    for example in examples:
        example.digest_into(whole)
    return whole.hexdigest()[:16]


def embedded(name: str, split: str, limit: int) -> list[Example]:
    """Rows 0 .. limit - 1 of a split of our own generators."""
    if name == "embedded_gsm8k":
        problems = [word_problem(split, index) for index in range(limit)]  # type: ignore[arg-type]
        rows = [{"question": p.question, "answer": p.answer} for p in problems]
    elif name == "embedded_news":
        reports = [report(split, index) for index in range(limit)]  # type: ignore[arg-type]
        rows = [{"article": r.article, "highlights": r.highlights} for r in reports]
    else:
        raise SpecfitError(f"no embedded workload {name!r}; known: embedded_gsm8k, embedded_news")
    return [Example(f"{split}-{index}", row) for index, row in enumerate(rows)]


def from_jsonl(path: Path, needed: Iterable[str], limit: int | None) -> list[Example]:
    """Rows of a JSON-lines file. Raises SpecfitError naming the line and the field that is missing."""
    needed = tuple(needed)
    examples = list(islice(_jsonl_rows(path, needed), limit))
    if not examples:
        raise SpecfitError(f"{path} has no rows; expected one JSON object per line")
    return examples


def _jsonl_rows(path: Path, needed: tuple[str, ...]) -> Iterator[Example]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # not splitlines: texts hold U+2028
    except FileNotFoundError:
        raise SpecfitError(f"dataset.path={path} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecfitError(f"dataset.path={path} cannot be read as UTF-8 text ({error})") from None
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise SpecfitError(f"{path} line {number + 1} is not JSON ({error.msg})") from None
        _require(row, needed, f"{path} line {number + 1}")
        yield Example(str(row.get("id", f"row-{number}")), row)


def _require(row: Any, needed: tuple[str, ...], where: str) -> None:
    if not isinstance(row, dict):
        raise SpecfitError(f"{where} is not a JSON object")
    if needed == ("prompt",) and "messages" in row:
        return
    absent = [name for name in needed if name not in row]
    if absent:
        raise SpecfitError(f"{where} has no field {absent[0]!r}; it has {', '.join(sorted(row))}")


def from_hub(source: str, needed: Iterable[str], limit: int | None) -> list[Example]:
    """`repository/configuration/split`, where there is a network or a local hub cache."""
    repository, configuration, split = source.rsplit("/", 2)
    try:
        from datasets import load_dataset

        rows = load_dataset(repository, configuration, split=split)
    except Exception as error:
        raise SpecfitError(
            f"dataset {repository} cannot be fetched ({type(error).__name__}); "
            "set dataset.path to a local JSON-lines file"
        ) from None
    examples = []
    for index, row in enumerate(islice(rows, limit)):
        _require(dict(row), tuple(needed), f"{source} row {index}")
        examples.append(Example(str(row.get("id", f"row-{index}")), dict(row)))
    return examples


def calibration_rows(path: Path, needed: Iterable[str], limit: int) -> list[Example]:
    """The first `limit` of the last 200 rows of a train file, which nothing was trained on."""
    rows = from_jsonl(path, needed, None)
    return rows[-GSM8K_CALIBRATION_ROWS:][:limit]
