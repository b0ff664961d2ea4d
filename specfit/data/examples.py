"""Where texts come from: the embedded generators, a JSON-lines file, or the hub."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from specfit.base.types import SpecfitError
from specfit.data.synthetic.reports import report
from specfit.data.synthetic.word_problems import word_problem

REQUEST_KEYS = frozenset(
    {
        *("system", "instructions", "max_tokens", "max_new_tokens", "max_completion_tokens"),
        *("temperature", "top_p", "top_k", "n", "stop", "seed", "logit_bias", "response_format"),
        *("tools", "functions", "tool_choice", "images", "image", "audio", "chat_template_kwargs"),
        *("enable_thinking", "reasoning_effort", "repetition_penalty", "presence_penalty"),
        *("frequency_penalty", "min_tokens", "logprobs"),
    }
)
"""What a row of prompts may ask of a server and would be ignored here."""

GSM8K_CALIBRATION_ROWS = 200
"""Of a GSM8K train file only the last rows calibrate: the embedded target did not train on them."""


@dataclass(frozen=True)
class Example:
    """One row of a workload before it is tokenised: named text fields, or chat `messages`."""

    example_id: str
    fields: dict[str, Any]
    cluster: str | None = None  # template or kind of event of a generated text; no part of it

    def digest(self) -> str:
        """16 hex digits."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        row = json.dumps([self.example_id, self.fields], sort_keys=True, ensure_ascii=False)
        # JSON may hold half a surrogate pair; its request fails later, as one row
        return hashlib.sha256(row.encode(errors="surrogatepass")).hexdigest()[:16]

    def texts(self, document: str | None) -> list[str]:
        """The question without the template around it: the document, or the messages' texts."""
        if "messages" not in self.fields:
            return [str(self.fields.get(document or "prompt", "")).strip()]
        turns = self.fields["messages"] if isinstance(self.fields["messages"], list) else []
        return [str(turn["content"]).strip() for turn in turns if _has_content(turn)]


def _has_content(turn: Any) -> bool:
    return isinstance(turn, dict) and isinstance(turn.get("content"), str)


@dataclass(frozen=True)
class Rows:
    """The rows that a run asks, and a sentence where their choice should be known."""

    examples: Sequence[Example]
    note: str | None = None


def digest(examples: Iterable[Example]) -> str:
    """Identity of the rows a run reads, 16 hex digits."""
    return joined_digest(example.digest() for example in examples)


def joined_digest(digests: Iterable[str]) -> str:
    """Identity of rows whose own digests are known: a recording keeps these, not the texts."""
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:16]


def embedded(name: str, split: str, limit: int) -> list[Example]:
    """Rows 0 .. limit - 1 of a split of our own generators."""
    if name not in ("embedded_gsm8k", "embedded_news"):
        raise SpecfitError(f"no embedded workload {name!r}; known: embedded_gsm8k, embedded_news")
    return [_embedded(name, split, index) for index in range(limit)]


@cache  # a plan of all suites asks for the same rows a thousand times
def _embedded(name: str, split: str, index: int) -> Example:
    if name == "embedded_gsm8k":
        problem = word_problem(split, index)
        row = {"question": problem.question, "answer": problem.answer}
        return Example(f"{split}-{index}", row, problem.family)
    item = report(split, index)
    row = {"article": item.article, "highlights": item.highlights}
    return Example(f"{split}-{index}", row, item.event)


def from_jsonl(
    path: Path, needed: Iterable[str], limit: int | None, key: str = "dataset.path"
) -> list[Example]:
    """Rows of a JSON-lines file. Raises SpecfitError naming the line and the field that is missing.

    `key` is the config key that named the file.
    """
    needed = tuple(needed)
    examples = list(islice(_jsonl_rows(path, needed, key), limit))
    if not examples:
        raise SpecfitError(f"{path} has no rows; expected one JSON object per line")
    return examples


def _jsonl_rows(path: Path, needed: tuple[str, ...], key: str) -> Iterator[Example]:
    try:
        # utf-8-sig: some editors put a mark first. Not splitlines: texts hold U+2028.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except FileNotFoundError:
        raise SpecfitError(f"{key}={path} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecfitError(f"{key}={path} cannot be read as UTF-8 text ({error})") from None
    line_of: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            what = error.msg if isinstance(error, json.JSONDecodeError) else error
            raise SpecfitError(f"{path} line {number} is not JSON ({what})") from None
        _require(row, needed, f"{path} line {number}")
        name = _id_of(row, number - 1)
        if name in line_of:
            raise SpecfitError(
                f"{path} line {number} repeats the id {name!r} of line {line_of[name]}; "
                "ids are distinct"
            )
        line_of[name] = number
        yield Example(name, row)


def _id_of(row: dict[str, Any], number: int) -> str:
    given = row.get("id")
    return f"row-{number}" if given is None else str(given)


def _require(row: Any, needed: tuple[str, ...], where: str) -> None:
    if not isinstance(row, dict):
        raise SpecfitError(f"{where} is not a JSON object")
    asks = set(needed[:1]) & row.keys()
    if "messages" in row and asks:
        raise SpecfitError(
            f"{where} has both {needed[0]!r} and 'messages', and asks one; remove the other"
        )
    if needed[:1] == ("prompt",):
        ignored = sorted(REQUEST_KEYS & row.keys())
        if ignored:
            raise SpecfitError(
                f"{where} asks for {ignored[0]!r}, which a row cannot set; remove it "
                "(dataset.system, max_new_tokens and dataset.chat_template_kwargs hold for all)"
            )
        if "messages" in row:
            return
    absent = [name for name in needed if name not in row]
    if absent:
        raise SpecfitError(f"{where} has no field {absent[0]!r}; it has {', '.join(sorted(row))}")


def from_hub(
    source: str, needed: Iterable[str], limit: int | None, key: str = "dataset.path"
) -> list[Example]:
    """`repository/configuration/split`, where there is a network or a local hub cache.

    `key` is the config key that names a file instead.
    """
    repository, configuration, split = source.rsplit("/", 2)
    try:
        from datasets import load_dataset

        rows = load_dataset(repository, configuration, split=split)
    except Exception as error:
        raise SpecfitError(
            f"dataset {repository} cannot be fetched ({type(error).__name__}); "
            f"set {key} to a local JSON-lines file"
        ) from None
    examples = []
    for index, row in enumerate(islice(rows, limit)):
        _require(dict(row), tuple(needed), f"{source} row {index}")
        examples.append(Example(_id_of(dict(row), index), dict(row)))
    return examples


def picked(found: Sequence[Example], rows: Sequence[int], limit: int | None, place: str) -> Rows:
    """The rows with these numbers, in this order, of a split; of a shorter file, its own in order.

    `limit` counts what is asked.
    """
    highest = max(rows)
    if highest < len(found):
        chosen = [found[row] for row in rows][:limit]
        note = f"rows: {len(chosen)} of the {len(rows)} that dataset.rows names, of {place}"
        return Rows(chosen, f"{note} ({len(found)} rows)")
    chosen = list(found[:limit])
    return Rows(
        chosen,
        f"rows: {place} from its top, {len(chosen)} of {len(found)}; dataset.rows goes up to "
        f"{highest} and is left out",
    )


# -- requests made from one template: intervals resample these as well as requests ---------------


def clusters_of(name: str, ids: Sequence[str], digests: Sequence[str]) -> Mapping[str, str]:
    """Template or kind of event by request id, of the requests that the generator of dataset `name`
    makes. A text that it no longer makes (another digest) has none, and so has text of others."""
    addresses = [address_of(request_id) for request_id in ids]
    longest: dict[str, int] = {}
    for split, index in addresses:
        longest[split] = max(longest.get(split, 0), index + 1)
    rows = {split: _made(name, split, count) for split, count in longest.items()}
    found = {}
    for request_id, digest, (split, index) in zip(ids, digests, addresses, strict=True):
        example = rows[split][index] if index >= 0 else None
        if example is not None and example.cluster is not None and example.digest() == digest:
            found[request_id] = example.cluster
    return found


def address_of(request_id: str) -> tuple[str, int]:
    """`evaluation-7` -> ("evaluation", 7); an index of -1 where it is no such id."""
    split, _, index = request_id.rpartition("-")
    return (split, int(index)) if index.isdecimal() else (split, -1)


@lru_cache(maxsize=8)
def _made(name: str, split: str, count: int) -> Sequence[Example]:
    return embedded(name, split, count)
