"""RunSpec of a replay: the recording says what was run, the config how it is run this time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from specfit.base.config import (
    FORMATS,
    UNHASHED,
    DatasetConfig,
    DrafterConfig,
    ModelConfig,
    RunConfig,
    hashed_part,
)
from specfit.base.interfaces import Drafter
from specfit.base.types import Request, RequestError, Score, SpecfitError
from specfit.decoding.expert_cache_factory import make_cache, pin_most_used
from specfit.decoding.replay.parts import RecordedDrafter, RecordedRoutes, RecordedTarget
from specfit.decoding.replay.playback import Playback
from specfit.decoding.replay.routes import PredictedRoutes
from specfit.decoding.spec import (
    RunSpec,
    profile_advice,
    profile_of,
    refuse_ram_slots,
    settle_slots,
)
from specfit.experts.prefetch import Prefetcher
from specfit.hardware.clock import ModelledClock
from specfit.hardware.reference_models import billing
from specfit.models.target.family import Geometry
from specfit.selection.registry import selector_spec
from specfit.storage.recording.files import Recording, file_digest
from specfit.storage.recording.requests import RecordedRequest
from specfit.storage.recording.route_predictions import Predictions, read_predictions
from specfit.storage.tables import MachineState

DECIDED = ("model", "drafter", "dataset", "max_new_tokens", "threads")
"""Config keys that a recording has decided; the others are the replay's own."""


@dataclass(frozen=True)
class RecordedWorkload:
    recorded: Sequence[RecordedRequest]
    stop_ids: frozenset[int]
    notes: Sequence[str] = ()

    @cached_property
    def ids(self) -> list[str]:
        return [one.request_id for one in self.recorded]

    @cached_property
    def digests(self) -> list[str]:
        return [one.example_digest for one in self.recorded]

    def request(self, index: int) -> Request:
        one = self.recorded[index]
        if one.request is None:
            raise RequestError(one.status)
        return replace(one.request, stop_ids=self.stop_ids)

    def text(self, request: Request, output_ids: Sequence[int]) -> str:
        return self._of(request).output_text or ""

    def score(self, request: Request, text: str, stop_reason: str | None) -> Score:
        """The recorded one; a recording keeps no other measure."""
        one = self._of(request)
        return Score(one.score, control=one.score_control)

    def _of(self, request: Request) -> RecordedRequest:
        return self.recorded[self.ids.index(request.request_id)]


@dataclass(frozen=True)
class RecordedQuestions:
    digest: str
    recorded: Sequence[RecordedRequest]
    stop_ids: frozenset[int]

    def requests(self) -> Iterator[Request]:
        workload = RecordedWorkload(self.recorded, self.stop_ids)
        return (workload.request(index) for index in range(len(self.recorded)))


@dataclass(frozen=True)
class ReplayRunSpec(RunSpec):
    """`recording` takes the place of checkpoint, dataset and device."""

    recording: Recording

    @cached_property
    def workload(self) -> RecordedWorkload:
        chosen = self.recording.requests[: self.config.limit]
        return RecordedWorkload(chosen, frozenset(self.recording.stop_ids))

    @cached_property
    def questions(self) -> RecordedQuestions:
        digest = str(self.recording.identity["calibration"])
        return RecordedQuestions(
            digest, self.recording.calibration, frozenset(self.recording.stop_ids)
        )

    @property
    def target_digest(self) -> str:
        return str(self.recording.identity["target"])

    @property
    def drafter_digest(self) -> str:
        return str(self.recording.identity["drafter"])

    def known_recording(self) -> Recording:
        return self.recording

    @property
    def place(self) -> str:
        return f"replay of recording {self.recording_id} (made on {self.recording.device})"


def resolve_replay(config: RunConfig, recording: Recording, said: Sequence[str] = ()) -> RunSpec:
    """Raises SpecfitError if the config needs what was not recorded.

    `said` are the dotted keys that a person set: of what the recording decides, they may only
    repeat it, or draft fewer levels.
    """
    _check_clock(config)
    _check_format(config, recording, said)
    settled = _with_recorded(config, recording.config, said)
    shape = asdict(recording.shape)
    expert_bytes, _ = shape.pop("expert_bytes"), shape.pop("expert_format")
    geometry = Geometry(**shape)
    refuse_ram_slots(settled, geometry.experts, "modelled")
    slots, notes = settle_slots(settled, geometry.experts)
    profile = profile_of(settled.gpu)
    bill = billing(settled.gpu.billed, geometry.layers, expert_bytes)
    notes += profile_advice(settled.gpu)
    if "half_real" in recording.notes:
        notes += (recording.notes["half_real"],)
    kind = selector_spec(settled.selector.name)
    return ReplayRunSpec(
        settled,
        geometry,
        kind,
        slots,
        profile,
        bill,
        "modelled",
        recording.device,
        notes,
        recording,
    )


def _check_clock(config: RunConfig) -> None:
    if config.gpu.clock == "wall" or config.gpu.link_gbps is None:
        raise SpecfitError(
            f"gpu={config.gpu.name} would measure, and a replay runs nothing that can be measured; "
            "use gpu=paper_main, or gpu.clock=modelled with a profile that has a link_gbps"
        )


def _check_format(config: RunConfig, recording: Recording, said: Sequence[str]) -> None:
    """`model.format` is not hashed, the weights that it makes are."""
    wanted = config.model.format
    if "model.format" not in said or wanted is None:
        return
    recorded = recording.config["model"].get("format") or FORMATS[0]
    stored = recording.shape.expert_format
    if wanted != recorded or (wanted == FORMATS[0] and stored is not None):
        raise SpecfitError(
            f"model.format={wanted} is not what was recorded ({stored or recorded}), and rounding "
            "changes tokens and routes; record that, or bill the recorded ones as experts of "
            f"another size, as with gpu.billed=qwen3-30b-a3b-{FORMATS[-1]}"
        )


def _with_recorded(config: RunConfig, recorded: Any, said: Sequence[str]) -> RunConfig:
    sections = {
        "model": ModelConfig(**recorded["model"]),
        "drafter": DrafterConfig(**recorded["drafter"]),
        "dataset": DatasetConfig(**recorded["dataset"]),
    }
    depth = config.drafter.max_depth
    if "drafter.max_depth" in said and depth <= sections["drafter"].max_depth:  # type: ignore[attr-defined]
        sections["drafter"].max_depth = depth  # type: ignore[attr-defined]
    if config.drafter.temperature != 1.0:  # a replay's own: pools are recorded as the head has them
        sections["drafter"].temperature = config.drafter.temperature  # type: ignore[attr-defined]
    whole: dict[str, Any] = {"max_new_tokens": recorded["max_new_tokens"]}
    whole |= {"threads": recorded["threads"], **sections}
    settled = replace(config, **whole)
    for key in said:
        decided = key.split(".")[0] in DECIDED and key not in UNHASHED
        if decided and _at(settled, key) != _at(config, key):
            raise SpecfitError(
                f"{key}={_shown(config, key)} is not what the recording holds "
                f"({_shown(settled, key)}); record that, or leave {key} out"
            )
    settled.freeze()
    return settled


def _at(config: Any, key: str) -> Any:
    for name in key.split("."):
        config = getattr(config, name)
    return (
        hashed_part(asdict(config), f"{key}.")
        if is_dataclass(config) and not isinstance(config, type)
        else config
    )


def _shown(config: Any, key: str) -> Any:
    value = _at(config, key)
    return value["name"] if isinstance(value, dict) else value


@dataclass(frozen=True)
class ReplayRuntime:
    """The recording's target on a cache of `slots`; nothing here can run a model."""

    spec: ReplayRunSpec
    playback: Playback
    target: RecordedTarget

    def drafter(self) -> RecordedDrafter:
        return RecordedDrafter(self.playback, self.spec.config.drafter.max_depth)

    def exact_routes(self) -> RecordedRoutes:
        return RecordedRoutes(self.playback)

    def learned_routes(self, file: Path, drafter: Drafter) -> PredictedRoutes:
        predictions = _predictions(self.spec.recording, file_digest(file))
        return PredictedRoutes(self.playback, self.spec.recording, predictions)

    def clock(self) -> ModelledClock:
        route_ms = self.spec.config.routes.level_ms
        return ModelledClock(self.spec.profile, self.spec.billing, route_ms)

    def prefetch_hooks(self) -> Prefetcher | None:
        return self.target.cache.prefetcher

    def request_begins(self) -> None:
        """Nothing is measured in a replay."""

    def state(self) -> MachineState:
        return MachineState()

    @property
    def expert_format(self) -> str | None:
        """What the recorded model ran in."""
        return self.spec.recording.shape.expert_format

    @property
    def disk_reads(self) -> None:
        """No block is read."""
        return None

    @property
    def locked_share(self) -> None:
        return None


@lru_cache(maxsize=2)  # a map replays one recording hundreds of times
def _predictions(recording: Recording, digest: str) -> Predictions:
    return read_predictions(recording, digest)


def replay_runtime(spec: RunSpec, slots: int, drafts: bool) -> ReplayRuntime:
    assert isinstance(spec, ReplayRunSpec), "a replay's machine needs a recording"
    recording = spec.recording
    shape = recording.shape
    playback = Playback([*recording.calibration, *recording.requests])
    cache = make_cache(spec, slots)
    chunk = spec.config.prefill_chunk
    target = RecordedTarget(playback, cache, shape.expert_bytes, chunk)
    runtime = ReplayRuntime(spec, playback, target)
    pin_most_used(spec, target, cache, runtime.clock())
    return runtime
