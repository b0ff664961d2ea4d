"""Every config key, declared once: default, values it may have, purpose, whether it is hashed.

The schema, the checks, `--help` and what a run's id leaves out are all read from `key(..)`.
Unknown keys raise. OmegaConf refuses every override of a frozen dataclass, so sections are plain
while Hydra composes them and are frozen by `from_hydra`, the only way the rest of the code gets a
config.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from omegaconf import OmegaConf

from specfit.base.types import SpecfitError

UNCACHED_SELECTORS = ("ar", "eagle3")
"""The paper's systems that clear the expert cache before every forward (app. B)."""

_UNSET = object()


def key(
    default: Any = MISSING,
    about: str = "",
    *,
    one_of: Sequence[str] = (),
    numbers: str = "",
    at_least: float | None = None,
    above: float | None = None,
    share: bool = False,
    hashed: bool = True,
    hash_default: Any = _UNSET,
    measured: bool = True,
) -> Any:
    """One config key. `default` may be a factory, such as `list`. None passes every check.

    one_of: the words it may be; `numbers` says that it may be a number as well, and of what.
    share: it is, or all of its values are, between 0 and 1.
    hashed=False: it cannot change a row, or a digest in the run's identity stands for it.
    hash_default: the value at which a key that came after the first runs is left out of the hash,
    so that no old id changes. It stays what it is when the default changes.
    measured=False: a value of a gpu group that no probe's file gives.
    """
    about_it = {
        "about": about,
        "one_of": tuple(one_of),
        "numbers": numbers,
        "at_least": at_least,
        "above": above,
        "share": share,
        "hashed": hashed,
        "measured": measured,
    }
    if hash_default is not _UNSET:
        about_it["hash_default"] = hash_default
    if callable(default):
        return field(default_factory=default, metadata=about_it)
    return field(default=default, metadata=about_it)


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


FORMATS = ("bf16", "fp8", "int4")
"""Of `model.format`; the first is the checkpoint as it is, in floating point."""


@dataclass
class ModelConfig(Section):
    name: str
    calibration_dataset: str = key(about="whose calibration split fits b_k and beta", hashed=False)
    path: str = key("", "a checkpoint folder; package:<path> lies in the package", hashed=False)
    repository: str | None = key(None, "on the hub, where path is empty", hashed=False)
    revision: str | None = key(None, "of the repository: a commit", hashed=False)
    dtype: str = key("float32", one_of=("float32", "bfloat16", "float16"))
    format: str | None = key(
        None,
        "fp8, int4: a copy with quantised weights, made at first use; null = as its files are",
        one_of=FORMATS,
        hashed=False,
    )
    num_layers: int | None = key(None, "the first layers alone", at_least=1)
    source: str = key(
        "checkpoint",
        "random: the shapes of path/config.json, made-up values; traced: the routes at path alone",
        one_of=("checkpoint", "random", "traced"),
        hash_default="checkpoint",
    )
    tokenizer: str | None = key(None, "a folder; null = path", hash_default=None)
    shape: dict[str, int] = key(dict, "of a random model: config.json keys", hash_default={})
    routing: str = key(
        "weights",
        "markov: a random model's routes from a chain fitted to real ones",
        one_of=("weights", "markov"),
    )
    donor: str | None = key(None, "traced: a model whose recorded trees stand above", hashed=False)
    graft: str | None = key(
        None, "traced: see specfit/decoding/replay/traced.py", hash_default=None
    )
    graft_seed: int = key(0, "traced: of the graft's draws", at_least=0, hash_default=0)
    acceptance: float | None = key(
        None, "traced: committed a cycle of drawn trees; null = recorded trees", hash_default=None
    )


@dataclass
class DrafterConfig(Section):
    name: str
    path: str = key("", "empty for the oracle and for a head from the hub", hashed=False)
    repository: str | None = key(None, hashed=False)
    revision: str | None = key(None, hashed=False)
    top_k: int = key(2, "children of a drafted node, and nodes of a level that get any", at_least=1)
    max_depth: int = key(5, "levels of a full pool", at_least=1)
    hits: list[float] = key(
        list, "oracle: chance to be right, by depth", share=True, hash_default=[]
    )
    temperature: float = key(
        1.0, "path probabilities to the power 1 / T, as selectors see them", hash_default=1.0
    )
    norm_feedback: str = key(
        "auto",
        "what a head's next step reads, the state before or after its last norm; auto: as its "
        "format says, measured where that is ambiguous",
        one_of=("auto", "before", "after"),
        hash_default="auto",
    )
    check: bool = key(False, "doctor: try every usual misreading of the head", hashed=False)
    force: bool = key(
        False, "oracle: commit the script whatever the target says", hash_default=False
    )

    @property
    def pool_nodes(self) -> int:
        """Of a full pool: top_k at level 1, then top_k children of each of top_k nodes."""
        return self.top_k + self.top_k**2 * (self.max_depth - 1)


@dataclass
class SelectorConfig(Section):
    name: str
    k: int = key(7, "verified nodes at most", at_least=0)
    adaptive_depth: bool = key(True, "ask after every level whether to draft another")


@dataclass
class RoutesConfig(Section):
    name: str
    accuracy: float = key(1.0, "noisy: how often it is right", share=True)
    path: str = key("", "folder of a source's file; package:<path> in the package", hashed=False)
    level_ms: float = key(
        0.0,
        "billed by the modelled clock for every read of a source on the clock",
        at_least=0,
        hash_default=0.0,
    )


@dataclass
class GpuConfig(Section):
    name: str = key(measured=False)
    clock: str = key("auto", one_of=("auto", "wall", "modelled"), hashed=False, measured=False)
    billed: str = key("self", "the model a forward is billed as", measured=False)
    gpu_names: list[str] = key(list, "of devices that are this machine", hashed=False)
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
    overlap: bool = key(True, "false: copying and computing take turns", hash_default=True)
    tree_ms: float = key(0.0, "of a forward that verifies any node", hash_default=0.0)
    extension_ms: float = key(0.0, "of a cycle that drafts", hash_default=0.0)
    miss_us: float = key(0.0, "what a missed expert computes longer", hash_default=0.0)
    host_expert_us: float = key(0.0, "an expert run on the host; 0 = unknown", hash_default=0.0)
    memory_bytes: int | None = None
    kernel: str = key(
        "auto",
        "of the experts; loop: on a GPU the other layers are transformers' own as well",
        one_of=("auto", "loop", "triton", "compiled"),
        hash_default="auto",
        measured=False,
    )
    graphs: bool = key(
        False,
        "a CUDA graph per layer between two expert phases, for up to 8 rows",
        hash_default=False,
        measured=False,
    )
    link_gbps_cap: float | None = key(
        None,
        "slows every copy down to this link, on the wall clock",
        above=0,
        hash_default=None,
        measured=False,
    )
    host_memory_gb: float | None = key(
        None,
        "RAM of a machine that doctor and advise plan for; null: this machine's",
        above=0,
        hashed=False,
        measured=False,
    )
    display_gb: float = key(
        0.0,
        "of memory_bytes, taken by a desktop's display: about 1 (doctor, advise, cache_slots=fit)",
        at_least=0,
        hashed=False,
        measured=False,
    )
    profile: str | None = key(
        None,
        "a probe's file: gives every value above, with gpu=local",
        hashed=False,
        measured=False,
    )
    advice: str | None = key(None, "a sentence that is printed", hashed=False)
    notes: dict[str, str] = key(dict, "how a value is known", hashed=False)


@dataclass
class OffloadConfig(Section):
    """Where experts lie that are in no slot."""

    tier: str = key(
        "host",
        "host: every expert in RAM; disk: a miss is read from a file into its slot",
        one_of=("host", "disk"),
        hash_default="host",
    )
    pack: str | None = key(
        None, "disk: folder of that file; null = beside the checkpoint or in a cache", hashed=False
    )
    ram_slots: int = key(
        0,
        "disk: experts of each layer kept in RAM, between the disk and the slots",
        at_least=0,
        hash_default=0,
    )


@dataclass
class DatasetConfig(Section):
    name: str
    source: str = key(about="embedded, jsonl")
    document: str | None = key(None, "the field a limit may cut")
    reference: str | None = key(None, "the field a scorer compares with")
    template: str = "{document}"
    system: str | None = key(None, "a message before the question", hash_default=None)
    chat_template_kwargs: dict[str, Any] = key(
        dict,
        "for the chat template: +dataset.chat_template_kwargs.enable_thinking=false",
        hash_default={},
    )
    scorer: str | None = None
    limit: int | None = key(None, "requests", at_least=1)
    max_new_tokens: int = key(128, at_least=1)
    max_document_tokens: int | None = key(None, at_least=1)
    path: str | None = key(None, "a file of JSON lines", hashed=False)
    hub: str | None = key(None, "repository/configuration/split, where there is a network")
    stands_for: str | None = key(
        None,
        "the paper's workload that it is or that it replaces in tables; null = neither",
        one_of=("gsm8k", "cnn_dailymail"),
        hashed=False,
    )
    rows: list[int] = key(list, "of the split, 0-based, in order; empty: all", hashed=False)


@dataclass
class CalibrationConfig(Section):
    at: str = key(
        "primary",
        "primary: one fit at `slots` for all cached runs; own: at cache_slots",
        one_of=("primary", "own"),
    )
    slots: int = key(48, "clipped to the expert count", at_least=0)
    path: str | None = key(None, "a calibration file, instead of looking one up", hashed=False)
    dataset_path: str | None = key(
        None, "calibration questions; null = the model's own default workload", hashed=False
    )


@dataclass
class RecordConfig(Section):
    """Only `python -m specfit.record` reads these; none is part of a run's id."""

    features: bool = key(False, "keep each root's drafter features, to train predictors on")
    split: str = key(
        "evaluation",
        "of an embedded dataset; train and development make route predictors",
        one_of=("evaluation", "train", "development"),
    )
    shard: str | None = key(None, "i/n: every n-th request from i on; shards merge")
    batch: int = key(8, "requests that go through the layers together", at_least=1)
    merge: list[str] = key(list, "recordings to join instead of recording")
    source: str | None = key(None, "record.from=<file>: routes of another engine, a traced model")
    experts: int | None = key(
        None, "of a layer of those routes, where the file does not say it", at_least=1
    )


@dataclass
class LoggerConfig(Section):
    """None of it is part of a run's id."""

    name: str = key(one_of=("none", "wandb"))
    mode: str | None = key(None, one_of=("online", "offline", "disabled"))
    project: str = "specfit"
    entity: str | None = key(None, "null: the account's own")
    wait_s: float = key(
        30.0, "at most, for the service: when a run starts and when it has ended", at_least=0
    )


@dataclass
class RunConfig(Section):
    """One run. Defaults of `limit` and `max_new_tokens` are the dataset's."""

    model: ModelConfig
    drafter: DrafterConfig
    selector: SelectorConfig
    routes: RoutesConfig
    gpu: GpuConfig
    dataset: DatasetConfig
    logger: LoggerConfig = key(hashed=False)
    calibration: CalibrationConfig = key(CalibrationConfig)
    record: RecordConfig = key(RecordConfig, hashed=False)
    offload: OffloadConfig = key(OffloadConfig)
    recording: str | None = key(
        None, "id or folder: what specfit.replay and routes=recording read", hashed=False
    )
    objective: str = key(
        "ratio",
        "what a selector maximises: ratio = R / T, lambda = R - lambda T (app. A.1)",
        one_of=("ratio", "lambda"),
        hash_default="ratio",
    )
    lambda_tokens_per_s: float | None = key(
        None, "the lambda; null = the run's own throughput so far", hash_default=None
    )
    cost: str = key(
        "union", "how a selection is priced: specfit/selection/cost_forms.py", hash_default="union"
    )
    level_cost_ms: float = key(
        0.0,
        "of a drafted level, in selection: then T is of a cycle that ends here",
        at_least=0,
        hash_default=0.0,
    )
    policy: str = key(
        "lru",
        "which expert goes: lfu, lfru, decayed_lfu, least_stale, static, belady, pool",
        hash_default="lru",
    )
    bypass: bool = key(
        False,
        "what a layer needs beyond its slots passes through staging and is not kept",
        hash_default=False,
    )
    prefetch: str = key(
        "off",
        "predicted experts come in while the link is idle",
        one_of=("off", "root", "tree", "layer"),
        hash_default="off",
    )
    prefetch_blocks: int | None = key(
        None,
        "of the area they come into; null = one expert of every layer",
        at_least=1,
        hash_default=None,
    )
    miss: str = key(
        "transfer",
        "cpu, auto: run missed experts on the host",
        one_of=("transfer", "cpu", "auto"),
        hash_default="transfer",
    )
    cache_slots: int | str = key(
        48,
        "experts of each layer kept on the device",
        one_of=("all", "fit"),
        numbers="a number of experts per layer",
        at_least=0,
    )
    limit: int | None = key(None, "at most this many requests; null = the dataset's", at_least=1)
    max_new_tokens: int | None = key(None, "null = the dataset's", at_least=1)
    prefill_chunk: int | None = key(
        None, "prompt tokens per forward; null = the whole prompt", at_least=1
    )
    threads: int = key(1, "fixed, since low bits of a float depend on it", at_least=1)
    seed: int = key(0, "of simulated route noise")
    repeat: int = key(0, "another number is another run of the same thing")
    device: str = key("auto", one_of=("auto", "cpu", "cuda"), hashed=False)
    results_dir: str = key("results", "where rows, fits and recordings go", hashed=False)
    force: bool = key(False, "run again although a finished run exists", hashed=False)
    trace: str | None = key(
        None, "a request id: write its timeline as a Chrome trace", hashed=False
    )
    compare: bool | None = key(
        None,
        "true: beside AR, AR + cache and EAGLE-3 + cache, recorded and replayed; false: alone; "
        "null: true for the packaged models, else beside finished runs",
        hashed=False,
    )
    show: int = key(0, "so many requests: prompt, answer, reference", at_least=0, hashed=False)

    @property
    def request_limit(self) -> int | None:
        return self.dataset.limit if self.limit is None else self.limit

    @property
    def new_tokens(self) -> int:
        return self.dataset.max_new_tokens if self.max_new_tokens is None else self.max_new_tokens

    @property
    def is_uncached(self) -> bool:
        return self.selector.name in UNCACHED_SELECTORS


# -- what is read from the declarations ------------------------------------------------------------


def declared(kind: type = RunConfig, prefix: str = "") -> Iterator[tuple[str, Field[Any]]]:
    """(dotted name, field) of every section and key."""
    hints = get_type_hints(kind)
    for item in fields(kind):
        yield prefix + item.name, item
        if is_dataclass(hints[item.name]):
            yield from declared(hints[item.name], f"{prefix}{item.name}.")  # type: ignore[arg-type]


UNHASHED = frozenset(name for name, item in declared() if not item.metadata.get("hashed", True))
"""Sections and keys that are in no id."""

HASH_DEFAULTS: dict[str, Any] = {
    name: item.metadata["hash_default"]
    for name, item in declared()
    if "hash_default" in item.metadata
}
"""Later key -> the value at which old rows stay true, and at which it is left out of the hash."""


def hashed_part(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The config without unhashed keys, later keys at their old value, and groups left empty."""
    part: dict[str, Any] = {}
    for name, value in config.items():
        dotted = f"{prefix}{name}"
        if dotted in UNHASHED:
            continue
        if dotted in HASH_DEFAULTS and _same(HASH_DEFAULTS[dotted], value):
            continue
        if isinstance(value, Mapping):
            value = hashed_part(value, f"{dotted}.")
            if not value:
                continue
        part[name] = value
    return part


def _same(a: Any, b: Any) -> bool:
    """As text, which tells False from 0 and 1 from 1.0."""
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


# -- from a composed config ------------------------------------------------------------------------


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
    for name in composed:
        if name not in known:
            raise SpecfitError(
                f"unknown key {prefix}{name}; {prefix.rstrip('.') or 'a run'} has "
                f"{', '.join(known)}"
            )
        if is_dataclass(hints[name]) and not OmegaConf.is_missing(composed, name):
            _refuse_extra_keys(composed[name], hints[name], f"{prefix}{name}.")


def apply_profile(gpu: GpuConfig) -> None:
    """Sets every hardware value from the probe's file that `gpu.profile` names; none is set beside
    it. Raises SpecfitError."""
    if gpu.profile is None:
        return
    plain = GpuConfig(name="local")
    for item in fields(gpu):
        is_own = not item.metadata.get("measured", True)
        if not is_own and getattr(gpu, item.name) != getattr(plain, item.name):
            raise SpecfitError(
                f"gpu.profile={gpu.profile} gives every hardware value, and gpu.{item.name} is set "
                "as well; use gpu=local with gpu.profile, and edit the file to change a value"
            )
    try:
        values = dict(json.loads(Path(gpu.profile).read_text(encoding="utf-8"))["profile"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SpecfitError(
            f"gpu.profile={gpu.profile} is no file of `python -m specfit.probe` ({error!r})"
        ) from None
    unknown = sorted(set(values) - {item.name for item in fields(gpu)})
    if unknown:
        raise SpecfitError(f"gpu.profile={gpu.profile} has the unknown value {unknown[0]}")
    for name, value in values.items():
        setattr(gpu, name, value)


def check(config: RunConfig) -> None:
    """What can be said before anything is loaded. Raises SpecfitError."""
    for name, item in declared():
        value: Any = config
        for part in name.split("."):
            value = getattr(value, part)
        if value is not None and item.metadata:
            _check_value(name, value, item.metadata)
    if config.lambda_tokens_per_s is not None and config.objective == "ratio":
        raise SpecfitError("lambda_tokens_per_s is read by objective=lambda alone; set both")
    offload, model = config.offload, config.model
    if offload.ram_slots and offload.tier != "disk":
        raise SpecfitError(
            f"offload.ram_slots={offload.ram_slots} keeps experts of a disk in RAM, and "
            f"offload.tier={offload.tier} has every expert there; set offload.tier=disk, or leave "
            "offload.ram_slots out"
        )
    if model.source == "checkpoint" and (model.shape or model.routing != "weights"):
        name = "model.shape" if model.shape else "model.routing"
        raise SpecfitError(f"{name} is for model.source=random; a checkpoint has shapes and routes")
    for name in ("donor", "graft", "acceptance"):
        if model.source != "traced" and getattr(model, name) is not None:
            raise SpecfitError(f"model.{name} is for model=qwen3-30b-a3b-traced")


def _check_value(name: str, value: Any, about: Mapping[str, Any]) -> None:
    words, numbers = about["one_of"], about["numbers"]
    if words and isinstance(value, str) and value not in words:
        if numbers:
            raise SpecfitError(f"{name} is {value!r}; use {numbers}, {' or '.join(words)}")
        raise SpecfitError(f"{name} is {value!r}; use one of {', '.join(words)}")
    if isinstance(value, int | float):
        if about["at_least"] is not None and value < about["at_least"]:
            raise SpecfitError(f"{name} is {value}; it must be at least {about['at_least']}")
        if about["above"] is not None and not value > about["above"]:
            raise SpecfitError(f"{name} is {value}; it must be above {about['above']}")
    values = value if isinstance(value, list) else [value]
    if about["share"] and not all(0.0 <= one <= 1.0 for one in values):
        what = "they are shares" if isinstance(value, list) else "it is a share"
        raise SpecfitError(f"{name} is {value}; {what} between 0 and 1")
