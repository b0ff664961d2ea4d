"""Texts to requests: the workload a run answers, and the questions a calibration probes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specfit.config import DatasetConfig, RunConfig
from specfit.core import Request, RequestError, SpecfitError
from specfit.workloads import examples as sources
from specfit.workloads.examples import Example
from specfit.workloads.prompts import Prompting
from specfit.workloads.scorers import scorer_named

CANDIDATES = 40  # rows looked at for three answers that are long enough
PROBE_TOKENS = 64  # cap of a walked answer, beyond the last position


class TextWorkload:
    """Examples asked one by one; the scorer is named by the dataset."""

    def __init__(
        self, examples: Sequence[Example], prompting: Prompting, scorer: str | None
    ) -> None:
        self._examples, self._prompting = examples, prompting
        self._score = scorer_named(scorer)

    @property
    def ids(self) -> list[str]:
        return [example.example_id for example in self._examples]

    @property
    def digests(self) -> list[str]:
        return [example.digest() for example in self._examples]

    def request(self, index: int) -> Request:
        request = self._prompting.request(self._examples[index])
        self.score(request, "")  # one that cannot score fails before it decodes
        return request

    def text(self, request: Request, output_ids: Sequence[int]) -> str:
        return str(self._prompting.tokenizer.decode(output_ids, skip_special_tokens=True))

    def score(self, request: Request, text: str) -> float | None:
        if self._score is None or request.reference is None:
            return None
        return self._score(text, request.reference)


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


def calibration_dataset(config: RunConfig) -> DatasetConfig:
    """The model's own default workload, whatever the run evaluates."""
    from omegaconf import OmegaConf

    name = config.model.calibration_dataset
    stored: Any = OmegaConf.load(Path(__file__).parent / "conf" / "dataset" / f"{name}.yaml")
    merged = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(DatasetConfig), stored))
    assert isinstance(merged, DatasetConfig)
    return merged


def calibration_rows(config: RunConfig) -> list[Example]:
    dataset, path = calibration_dataset(config), config.calibration.dataset_path
    needed = [dataset.document or "prompt"]
    if path is not None:
        return sources.calibration_rows(Path(path), needed, CANDIDATES)
    if dataset.source == "embedded":
        return sources.embedded(dataset.name, "calibration", CANDIDATES)
    if dataset.hub is not None:
        train = dataset.hub.rsplit("/", 1)[0] + "/train"
        return sources.from_hub(train, needed, None)[-sources.GSM8K_CALIBRATION_ROWS :][:CANDIDATES]
    raise SpecfitError("calibration needs rows: set calibration.dataset_path to a JSON-lines file")
