"""The schema of every config group, turned once into frozen objects. Unknown keys raise.

OmegaConf refuses every override of a frozen dataclass, so sections are plain while Hydra composes
them and are frozen by `from_hydra`, the only way the rest of the code gets a config.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, get_type_hints

from omegaconf import OmegaConf

from specfit.base.profile_file import apply_profile
from specfit.base.types import SpecfitError

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
    calibration_dataset: str  # whose calibration split fits b_k and beta
    path: str = ""  # a checkpoint folder; package:<path> lies inside the installed package
    repository: str | None = None  # on the hub, where `path` is empty
    revision: str | None = None  # of the repository: a commit
    dtype: str = "float32"
    num_layers: int | None = None
    source: str = "checkpoint"  # random: the shapes of path/config.json, made-up values
    tokenizer: str | None = None  # a folder; null = path
    shape: dict[str, int] = field(default_factory=dict)  # of a random model: config.json keys
    routing: str = "weights"  # markov: a random model's routes from a chain fitted to real ones


@dataclass
class DrafterConfig(Section):
    name: str
    path: str = ""  # empty for the oracle, which has no weights, and for a head from the hub
    repository: str | None = None
    revision: str | None = None
    top_k: int = 2
    max_depth: int = 5
    hits: list[float] = field(default_factory=list)  # oracle: chance to be right, by depth
    temperature: float = 1.0  # path probabilities to the power 1 / T, as selectors see them
    force: bool = False  # oracle: commit the script whatever the target says

    @property
    def pool_nodes(self) -> int:
        """Of a full pool: top_k at level 1, then top_k children of each of top_k nodes."""
        return self.top_k + self.top_k**2 * (self.max_depth - 1)


@dataclass
class SelectorConfig(Section):
    name: str
    k: int = 7
    adaptive_depth: bool = True


@dataclass
class RoutesConfig(Section):
    name: str
    accuracy: float = 1.0
    path: str = ""  # folder of a source's file; package:<path> lies inside the installed package
    level_ms: float = 0.0  # billed by the modelled clock for every read of a source on the clock


@dataclass
class GpuConfig(Section):
    name: str
    clock: str = "auto"
    billed: str = "self"
    gpu_names: list[str] = field(default_factory=list)
    link_gbps: float | None = None
    fixed_ms: float | None = None
    node_ms: float = 0.6
    draft_level_ms: float = 3.0
    selection_ms: float = 3.0
    commit_ms: float = 0.0
    prefill_token_ms: float = 0.2
    copy_latency_us: float = 0.0
    expert_us: float = 0.0
    copies_in_flight: int = 2
    overlap: bool = True  # false: copying and computing take turns, as on a CPU
    tree_ms: float = 0.0  # of a forward that verifies any node, beside node_ms for each
    extension_ms: float = 0.0  # of a cycle that drafts, beside draft_level_ms for each level
    host_expert_us: float = 0.0  # an expert run on the host (miss=cpu, auto); 0 = unknown
    memory_bytes: int | None = None
    kernel: str = "auto"  # of the experts: auto, loop, triton, compiled (CPU)
    link_gbps_cap: float | None = None  # slows every copy down to this link, on the wall clock
    profile: str | None = None  # a probe's file: gives every value above, with gpu=local
    advice: str | None = None
    notes: dict[str, str] = field(default_factory=dict)


@dataclass
class DatasetConfig(Section):
    name: str
    source: str  # embedded, jsonl
    document: str | None = None  # the field a limit may cut
    reference: str | None = None  # the field a scorer compares with
    template: str = "{document}"
    system: str | None = None  # a message before the question
    scorer: str | None = None
    limit: int | None = None
    max_new_tokens: int = 128
    max_document_tokens: int | None = None
    path: str | None = None
    hub: str | None = None  # repository/configuration/split, where there is a network
    rows: list[int] = field(default_factory=list)  # of the split, 0-based, in order; empty: all


@dataclass
class CalibrationConfig(Section):
    at: str = "primary"
    slots: int = 48
    path: str | None = None
    dataset_path: str | None = None


@dataclass
class RecordConfig(Section):
    """Only `python -m specfit.record` reads these; none is part of a run's id."""

    features: bool = False  # keep each root's drafter features, float16, to train predictors on
    split: str = "evaluation"  # of an embedded dataset: train and development make predictors
    shard: str | None = None  # i/n: requests i, i + n, ..; recordings of all shards merge
    batch: int = 8  # requests that go through the layers together
    merge: list[str] = field(default_factory=list)  # recordings to join instead of recording


@dataclass
class LoggerConfig(Section):
    """None of it is part of a run's id."""

    name: str
    mode: str | None = None  # online, offline, disabled
    project: str = "specfit"
    entity: str | None = None  # null: the account's own
    wait_s: float = 30.0  # for what is still to be sent when a run has ended


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
    record: RecordConfig = field(default_factory=RecordConfig)
    recording: str | None = None
    objective: str = "ratio"  # lambda: R - lambda T (app. A.1)
    lambda_tokens_per_s: float | None = None  # null: the run's own throughput so far
    cost: str = "union"  # how a selection is priced: see specfit/selection/costs.py
    level_cost_ms: float = 0.0  # of a drafted level, in selection: specfit/selection/levels.py
    policy: str = "lru"  # which resident goes: see specfit/experts/eviction.py
    bypass: bool = False  # a layer that wants more than its slots streams the rest past them
    prefetch: str = "off"  # what comes in before it is demanded: see specfit/experts/prefetch.py
    prefetch_blocks: int | None = None  # null: one expert of every layer
    miss: str = "transfer"  # or run on the host: see specfit/experts/host_experts.py
    cache_slots: int | str = 48
    limit: int | None = None
    max_new_tokens: int | None = None
    prefill_chunk: int | None = None
    threads: int = 1
    seed: int = 0
    repeat: int = 0
    device: str = "auto"
    results_dir: str = "results"
    force: bool = False
    trace: str | None = None

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
    from omegaconf.errors import OmegaConfBaseException

    _refuse_extra_keys(composed, RunConfig)
    try:
        config = OmegaConf.to_object(composed)
    except OmegaConfBaseException as error:
        raise SpecfitError(str(error).splitlines()[0]) from None
    assert isinstance(config, RunConfig)
    apply_profile(config.gpu)
    check(config)
    config.freeze()
    return config


def _refuse_extra_keys(composed: Any, kind: type, prefix: str = "") -> None:
    """`+key=value` adds a key behind the schema's back."""
    known = [item.name for item in fields(kind)]
    hints = get_type_hints(kind)
    for key in composed:
        if key not in known:
            raise SpecfitError(
                f"unknown key {prefix}{key}; {prefix.rstrip('.') or 'a run'} has {', '.join(known)}"
            )
        if is_dataclass(hints[key]) and not OmegaConf.is_missing(composed, key):
            _refuse_extra_keys(composed[key], hints[key], f"{prefix}{key}.")


def check(config: RunConfig) -> None:
    """What can be said before anything is loaded. Raises SpecfitError."""
    for key in ("limit", "max_new_tokens", "prefill_chunk", "threads", "prefetch_blocks"):
        _at_least(key, getattr(config, key), 1)
    for key in ("limit", "max_new_tokens", "max_document_tokens"):
        _at_least(f"dataset.{key}", getattr(config.dataset, key), 1)
    _at_least("model.num_layers", config.model.num_layers, 1)
    _at_least("record.batch", config.record.batch, 1)
    _one_of("record.split", config.record.split, ("evaluation", "train", "development"))
    _at_least("selector.k", config.selector.k, 0)
    _at_least("routes.level_ms", config.routes.level_ms, 0)
    _at_least("drafter.top_k", config.drafter.top_k, 1)
    _at_least("drafter.max_depth", config.drafter.max_depth, 1)
    _at_least("calibration.slots", config.calibration.slots, 0)
    _one_of("calibration.at", config.calibration.at, ("primary", "own"))
    _one_of("objective", config.objective, ("ratio", "lambda"))
    _at_least("level_cost_ms", config.level_cost_ms, 0)
    _one_of("prefetch", config.prefetch, ("off", "root", "tree", "layer"))
    _one_of("miss", config.miss, ("transfer", "cpu", "auto"))
    if config.lambda_tokens_per_s is not None and config.objective == "ratio":
        raise SpecfitError("lambda_tokens_per_s is read by objective=lambda alone; set both")
    _one_of("logger.name", config.logger.name, ("none", "wandb"))
    if config.logger.mode is not None:
        _one_of("logger.mode", config.logger.mode, ("online", "offline", "disabled"))
    _at_least("logger.wait_s", config.logger.wait_s, 0)
    _one_of("device", config.device, ("auto", "cpu", "cuda"))
    _one_of("gpu.kernel", config.gpu.kernel, ("auto", "loop", "triton", "compiled"))
    _one_of("model.source", config.model.source, ("checkpoint", "random"))
    _one_of("model.routing", config.model.routing, ("weights", "markov"))
    _check_random_model(config.model)
    if config.gpu.link_gbps_cap is not None and not config.gpu.link_gbps_cap > 0:
        raise SpecfitError(f"gpu.link_gbps_cap is {config.gpu.link_gbps_cap}; it must be above 0")
    if not all(0.0 <= hit <= 1.0 for hit in config.drafter.hits):
        raise SpecfitError(f"drafter.hits is {config.drafter.hits}; they are chances, 0 to 1")
    _one_of("gpu.clock", config.gpu.clock, ("auto", "wall", "modelled"))
    _one_of("model.dtype", config.model.dtype, ("float32", "bfloat16", "float16"))
    if not 0.0 <= config.routes.accuracy <= 1.0:
        raise SpecfitError(
            f"routes.accuracy is {config.routes.accuracy}; it is a share between 0 and 1"
        )
    slots = config.cache_slots
    if isinstance(slots, str) and slots not in ("all", "fit"):
        raise SpecfitError(
            f"cache_slots is {slots!r}; use a number of experts per layer, all or fit"
        )
    if isinstance(slots, int):
        _at_least("cache_slots", slots, 0)


def _check_random_model(model: ModelConfig) -> None:
    if model.source == "checkpoint" and (model.shape or model.routing != "weights"):
        key = "model.shape" if model.shape else "model.routing"
        raise SpecfitError(f"{key} is for model.source=random; a checkpoint has shapes and routes")


def _at_least(key: str, value: float | None, least: int) -> None:
    if value is not None and value < least:
        raise SpecfitError(f"{key} is {value}; it must be at least {least}")


def _one_of(key: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise SpecfitError(f"{key} is {value!r}; use one of {', '.join(known)}")
