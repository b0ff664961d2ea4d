"""A machine in numbers (`Profile`), and the model a forward is billed as (`Billing`).

Values live in conf/gpu/*.yaml or in a probe's file; here they are checked and named.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from specfit.base.types import ForwardTrace, SpecfitError

SOURCES = ("published", "inferred", "assumed", "measured")

_TIMES = (
    "fixed_ms",
    "tree_ms",
    "node_ms",
    "extension_ms",
    "draft_level_ms",
    "selection_ms",
    "commit_ms",
    "prefill_token_ms",
    "copy_latency_us",
    "expert_us",
    "miss_us",
    "host_expert_us",
)
_VALUES = ("link_gbps", *_TIMES, "copies_in_flight", "memory_bytes", "overlap")

_NEUTRAL: Mapping[str, float] = {
    "overlap": True,
    "tree_ms": 0.0,
    "extension_ms": 0.0,
    "miss_us": 0.0,
    "host_expert_us": 0.0,
}
"""Values added after rows were published: left out of the digest where they are neutral."""


@dataclass(frozen=True)
class Profile:
    """Hardware numbers (docs/clocks.md); None = unknown, which only the wall clock allows."""

    name: str
    link_gbps: float | None  # host to device, 1e9 bytes per second
    fixed_ms: float | None  # per forward, spread evenly over the billed layers
    gpu_names: tuple[str, ...] = ()  # device names (whole, any case) that are this machine
    node_ms: float = 0.6  # per verified node, root not counted
    draft_level_ms: float = 3.0  # per level; assumed ones hold the extension of the first as well
    selection_ms: float = 3.0  # per cycle, route conversion included
    commit_ms: float = 0.0
    prefill_token_ms: float = 0.2  # drafter included
    copy_latency_us: float = 0.0  # from a copy's issue to its first byte on the link
    expert_us: float = 0.0  # compute of one expert of one layer
    copies_in_flight: int = 2
    overlap: bool = True  # copies travel while experts compute; a CPU does one after the other
    tree_ms: float = 0.0  # per forward with any node: a mask, kernels for more than one row
    extension_ms: float = 0.0  # per cycle that drafts: the head over the rows just committed
    miss_us: float = 0.0  # what a missed expert computes longer: alone, not with the other hits
    host_expert_us: float = 0.0  # one expert run on the host; 0 = unknown, and none is run there
    memory_bytes: int | None = None
    notes: Mapping[str, str] = field(default_factory=dict)  # value -> one of SOURCES

    def __post_init__(self) -> None:
        if self.link_gbps is not None and not _is_positive(self.link_gbps):
            raise self._refusal("link_gbps", "a link speed above 0 GB/s")
        for name in _TIMES:
            value = getattr(self, name)
            if value is None and name == "fixed_ms":
                continue
            if value is None or not (math.isfinite(value) and value >= 0):
                raise self._refusal(name, "a time of 0 or more")
        if self.copies_in_flight not in range(1, 9):
            raise self._refusal("copies_in_flight", "a whole number from 1 to 8")
        if self.memory_bytes is not None and not _is_positive(self.memory_bytes):
            raise self._refusal("memory_bytes", "a number of bytes above 0, or null")
        for name, source in self.notes.items():
            if name not in _VALUES or source not in SOURCES:
                raise SpecfitError(
                    f"profile {self.name}: note {name}={source} is not understood; "
                    f"notes say of a value that it is {', '.join(SOURCES)}"
                )

    def _refusal(self, name: str, right: str) -> SpecfitError:
        return SpecfitError(f"profile {self.name}: {name}={getattr(self, name)} must be {right}")

    def digest(self) -> str:
        """16 hex digits over the values; neither the name, the notes nor the GPU names count."""
        values: dict[str, float | None] = {}
        for name in _VALUES:
            value = getattr(self, name)
            if name not in _NEUTRAL or value != _NEUTRAL[name]:
                values[name] = None if value is None else float(value)
        text = json.dumps(values, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Billing:
    """The model whose layers and expert bytes the modelled clock bills (`gpu.billed`)."""

    name: str
    layers: int
    expert_bytes: int
    own_layers: int
    own_expert_bytes: int

    def __post_init__(self) -> None:
        assert min(self.own_layers, self.own_expert_bytes, self.expert_bytes) > 0
        if self.layers < self.own_layers or self.layers % self.own_layers:
            raise SpecfitError(
                f"gpu.billed={self.name} has {self.layers} layers, not a whole multiple of this "
                f"model's {self.own_layers}; use gpu.billed=self"
            )

    @classmethod
    def own(cls, layers: int, expert_bytes: int) -> Billing:
        """`gpu.billed=self`: the model is billed as what it is."""
        return cls("self", layers, expert_bytes, layers, expert_bytes)

    @property
    def layer_scale(self) -> int:
        """Billed layers that one own layer stands for."""
        return self.layers // self.own_layers

    def billed_bytes(self, trace: ForwardTrace) -> int:
        """Bytes of a forward, prefetched ones too, as the billed model would move them."""
        assert len(trace.misses) == self.own_layers, "the trace is of another model"
        copies = int(trace.misses.sum()) + trace.prefetched
        return copies * self.layer_scale * self.expert_bytes


def _is_positive(value: float) -> bool:
    return math.isfinite(value) and value > 0
