"""The schema of every config group, turned once into frozen objects. Unknown keys raise.

OmegaConf refuses every override of a frozen dataclass, so sections are plain while Hydra composes
them and are frozen by `from_hydra`, the only way the rest of the code gets a config.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Optional, Union

from specfit.core import SpecfitError

UNCACHED_SELECTORS = ("ar", "eagle3")
"""The paper's systems that clear the expert cache before every forward (app. B)."""


class Section:
    """A dataclass whose attributes can be set until `freeze`."""

    def __setattr__(self, name: str, value: Any) -> None:
        assert not self.__dict__.get("_frozen"), f"{type(self).__name__}.{name} is frozen"
        object.__setattr__(self, name, value)

    def freeze(self) -> None:
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if isinstance(value, Section):
                value.freeze()
        object.__setattr__(self, "_frozen", True)


@dataclass
class ModelConfig(Section):
    name: str
    path: str  # a checkpoint folder; package:<path> lies inside the installed package
    calibration_dataset: str  # whose calibration split fits b_k and beta
    dtype: str = "float32"
    num_layers: Optional[int] = None
    routing: str = "weights"


@dataclass
class DrafterConfig(Section):
    name: str
    path: str
    top_k: int = 2
    max_depth: int = 5


@dataclass
class SelectorConfig(Section):
    name: str
    k: int = 7
    adaptive_depth: bool = True


@dataclass
class RoutesConfig(Section):
    name: str
    accuracy: float = 1.0


@dataclass
class GpuConfig(Section):
    name: str
    clock: str = "auto"
    billed: str = "self"
    gpu_names: list[str] = field(default_factory=list)
    link_gbps: Optional[float] = None
    fixed_ms: Optional[float] = None
    node_ms: float = 0.6
    draft_level_ms: float = 3.0
    selection_ms: float = 3.0
    commit_ms: float = 0.0
    prefill_token_ms: float = 0.2
    copy_latency_us: float = 0.0
    expert_us: float = 0.0
    copies_in_flight: int = 2
    memory_bytes: Optional[int] = None
    advice: Optional[str] = None
    notes: dict[str, str] = field(default_factory=dict)


@dataclass
class DatasetConfig(Section):
    name: str
    source: str  # embedded, jsonl
    document: Optional[str] = None  # the field a limit may cut
    reference: Optional[str] = None  # the field a scorer compares with
    template: str = "{document}"
    scorer: Optional[str] = None
    limit: Optional[int] = None
    max_new_tokens: int = 128
    max_document_tokens: Optional[int] = None
    path: Optional[str] = None
    hub: Optional[str] = None  # repository/configuration/split, where there is a network


@dataclass
class CalibrationConfig(Section):
    at: str = "primary"
    slots: int = 48
    path: Optional[str] = None
    dataset_path: Optional[str] = None


@dataclass
class LoggerConfig(Section):
    name: str


@dataclass
class RunConfig(Section):
    """One run. Defaults of `limit` and `max_new_tokens` are the dataset's."""

    model: ModelConfig
    drafter: DrafterConfig
    selector: SelectorConfig
    routes: RoutesConfig
    gpu: GpuConfig
    dataset: DatasetConfig
    calibration: CalibrationConfig
    logger: LoggerConfig
    cache_slots: Union[int, str] = 48
    limit: Optional[int] = None
    max_new_tokens: Optional[int] = None
    prefill_chunk: Optional[int] = None
    threads: int = 1
    seed: int = 0
    repeat: int = 0
    device: str = "auto"
    results_dir: str = "results"
    force: bool = False
    trace: Optional[str] = None

    @property
    def request_limit(self) -> int | None:
        return self.dataset.limit if self.limit is None else self.limit

    @property
    def new_tokens(self) -> int:
        return self.dataset.max_new_tokens if self.max_new_tokens is None else self.max_new_tokens

    @property
    def is_uncached(self) -> bool:
        return self.selector.name in UNCACHED_SELECTORS


def from_hydra(composed: Any) -> RunConfig:
    """A composed OmegaConf node -> frozen, checked RunConfig. Raises SpecfitError."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        config = OmegaConf.to_object(composed)
    except OmegaConfBaseException as error:
        raise SpecfitError(str(error).splitlines()[0]) from None
    assert isinstance(config, RunConfig)
    check(config)
    config.freeze()
    return config


def check(config: RunConfig) -> None:
    """What can be said before anything is loaded. Raises SpecfitError."""
    _at_least("limit", config.limit, 1)
    _at_least("max_new_tokens", config.max_new_tokens, 1)
    _at_least("prefill_chunk", config.prefill_chunk, 1)
    _at_least("threads", config.threads, 1)
    _at_least("selector.k", config.selector.k, 0)
    _at_least("drafter.top_k", config.drafter.top_k, 1)
    _at_least("drafter.max_depth", config.drafter.max_depth, 1)
    _at_least("calibration.slots", config.calibration.slots, 0)
    _one_of("calibration.at", config.calibration.at, ("primary", "own"))
    _one_of("device", config.device, ("auto", "cpu", "cuda"))
    _one_of("gpu.clock", config.gpu.clock, ("auto", "wall", "modelled"))
    _one_of("model.dtype", config.model.dtype, ("float32", "bfloat16", "float16"))
    if not 0.0 <= config.routes.accuracy <= 1.0:
        raise SpecfitError(
            f"routes.accuracy is {config.routes.accuracy}; it is a share between 0 and 1"
        )
    slots = config.cache_slots
    if isinstance(slots, str) and slots not in ("all", "fit"):
        raise SpecfitError(f"cache_slots is {slots!r}; use a number of experts per layer, all or fit")
    if isinstance(slots, int):
        _at_least("cache_slots", slots, 0)


def _at_least(key: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise SpecfitError(f"{key} is {value}; it must be at least {least}")


def _one_of(key: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise SpecfitError(f"{key} is {value!r}; use one of {', '.join(known)}")
