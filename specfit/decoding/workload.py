"""Texts to requests: the workload a run answers, and the questions a calibration probes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from specfit.base.config import DatasetConfig, RunConfig
from specfit.base.paths import CONF
from specfit.base.types import Request, RequestError, Score, SpecfitError
from specfit.data import examples as sources
from specfit.data.examples import Example, Rows
from specfit.data.prompts import Prompting
from specfit.data.scorers import scorer_named

CANDIDATES = 40  # rows looked at for three answers that are long enough
EMBEDDED_CANDIDATES = 200  # few answers of the synthetic problems exceed 48 tokens
PROBE_TOKENS = 64  # cap of a walked answer, beyond the last position


class TextWorkload:
    """Examples asked one by one; the scorer is named by the dataset."""

    def __init__(self, rows: Rows, prompting: Prompting, scorer: str | None) -> None:
        self._rows, self._prompting = rows, prompting
        self._scorer = scorer_named(scorer)
        if self._scorer is not None and prompting.reference is None:
            raise SpecfitError(f"dataset.scorer={scorer} needs dataset.reference=<a field's name>")

    @property
    def ids(self) -> list[str]:
        return [example.example_id for example in self._rows.examples]

    @property
    def digests(self) -> list[str]:
        return [example.digest() for example in self._rows.examples]

    @property
    def notes(self) -> list[str]:
        """Sentences the person who started the run should read."""
        scored = f"score {self._scorer.name}: {self._scorer.note}" if self._scorer else None
        notes = (self._rows.note, scored, self._unscored())
        return [note for note in notes if note is not None]

    def _unscored(self) -> str | None:
        """How many references can score nothing, and the first reason: they are decoded anyway."""
        if self._scorer is None:
            return None
        reasons = []
        for example in self._rows.examples:
            try:
                self._scorer.check(self._prompting.reference_of(example) or "")
            except RequestError as error:
                reasons.append(f"{example.example_id}: {error}")
        if not reasons:
            return None
        total = len(self._rows.examples)
        return f"no score for {len(reasons)} of {total} requests ({reasons[0]}); all are decoded"

    def request(self, index: int) -> Request:
        return self._prompting.request(self._rows.examples[index])

    def text(self, request: Request, output_ids: Sequence[int]) -> str:
        return str(self._prompting.tokenizer.decode(output_ids, skip_special_tokens=True))

    def score(self, request: Request, text: str, stop_reason: str | None) -> Score:
        if self._scorer is None or request.reference is None:
            return Score()
        score = self._scorer(text, request.reference, stop_reason)
        other = self._other_reference(request)
        control = None if other is None else self._scorer(text, other, stop_reason).value
        return replace(score, control=control)

    def _other_reference(self, request: Request) -> str | None:
        """That of the example before, so that it does not depend on how many are asked; the first
        one has none."""
        index = self._places[request.request_id]
        return self._prompting.reference_of(self._rows.examples[index - 1]) if index else None

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.ids)}


@dataclass(frozen=True)
class TextQuestions:
    """Calibration rows; an unusable one is no question, the next is taken."""

    rows: Sequence[Example]
    prompting: Prompting

    @property
    def digest(self) -> str:
        return sources.digest(self.rows)

    def requests(self) -> Iterator[Request]:
        for row in self.rows:
            try:
                yield self.prompting.request(row)
            except RequestError:
                continue


def evaluated_rows(dataset: DatasetConfig, limit: int | None, split: str = "evaluation") -> Rows:
    """The rows of a dataset that a run asks: at most `limit` of those that it names.

    `split` is of an embedded dataset; a recording may be of text that predictors are trained on.
    """
    needed = [name for name in (dataset.document, dataset.reference) if name is not None]
    if dataset.source == "embedded":
        if limit is None:
            raise SpecfitError(f"dataset={dataset.name} has no end of its own; set limit=<number>")
        return Rows(sources.embedded(dataset.name, split, limit))
    if split != "evaluation":
        raise SpecfitError(
            f"record.split={split} is for embedded datasets; a file has the split it was taken from"
        )
    if dataset.path is None and dataset.hub is None:
        raise SpecfitError(f"dataset={dataset.name} needs dataset.path=<a JSON-lines file>")
    requested = limit if not dataset.rows else None  # which rows there are decides which are asked
    if dataset.path is not None:
        place = Path(dataset.path).name
        result = sources.from_jsonl(Path(dataset.path), needed, requested)
    else:
        assert dataset.hub is not None
        place, result = dataset.hub, sources.from_hub(dataset.hub, needed, requested)
    return sources.picked(result, dataset.rows, limit, place) if dataset.rows else Rows(result)


# -- calibration ---------------------------------------------------------------------------------


def calibration_dataset(config: RunConfig) -> DatasetConfig:
    """The model's own default workload, whatever the run evaluates."""
    from omegaconf import OmegaConf

    name = config.model.calibration_dataset
    stored: Any = OmegaConf.load(CONF / "dataset" / f"{name}.yaml")
    merged = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(DatasetConfig), stored))
    assert isinstance(merged, DatasetConfig)
    return merged


def calibration_rows(config: RunConfig, evaluated: Sequence[Example]) -> list[Example]:
    """Raises SpecfitError where one of them is also evaluated."""
    dataset, path = calibration_dataset(config), config.calibration.dataset_path
    key = "calibration.dataset_path"
    if path is None and dataset.source == "embedded":  # its splits share no text
        return sources.embedded(dataset.name, "calibration", EMBEDDED_CANDIDATES)
    needed = [dataset.document or "prompt"]
    if path is not None:
        rows = sources.from_jsonl(Path(path), needed, None, key)
    elif dataset.hub is not None:
        rows = sources.from_hub(dataset.hub.rsplit("/", 1)[0] + "/train", needed, None, key)
    else:
        raise SpecfitError(f"calibration needs rows: set {key} to a JSON-lines file")
    chosen = rows[-sources.GSM8K_CALIBRATION_ROWS :][:CANDIDATES]
    evaluated_texts = {
        text for example in evaluated for text in example.texts(config.dataset.document)
    }
    for example in chosen:
        if evaluated_texts.intersection(example.texts(dataset.document)):
            raise SpecfitError(
                f"calibration row {example.example_id} of {path or dataset.hub} is evaluated too; "
                f"set {key} to rows of the train split"
            )
    return chosen
