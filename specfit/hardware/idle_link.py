"""When the link is free, and for how long: what a profile says of a cycle's phases.

Copies that are not demanded yet may only use this time. On the modelled clock it is what is
billed; on the wall clock it is what the profile predicts, and decides how many copies
are handed to the device before a layer's routes are known.
"""

from __future__ import annotations

from dataclasses import dataclass

from specfit.base.types import SpecfitError
from specfit.hardware.profile import Billing, Profile

PIECES = 3
"""A block travels as gate, up and down, so that an on-demand copy waits for a third at most."""


@dataclass(frozen=True)
class IdleLink:
    """Nanoseconds; an own expert's copy is all the billed ones that it stands for."""

    copy_ns: int  # of an own expert
    piece_ns: int
    scale: int  # billed layers of one own layer
    level_ns: int
    route_ns: int
    select_ns: int
    fixed_ns: float  # of one billed layer, before its routes are known
    node_ns: float  # more for every verified node
    tree_ns: float  # more for any node

    @classmethod
    def of(cls, profile: Profile, billing: Billing, route_ms: float) -> IdleLink:
        if profile.link_gbps is None or profile.fixed_ms is None:
            raise SpecfitError(
                f"gpu={profile.name} has no link_gbps or fixed_ms, which say how many copies fit "
                "before a layer's routes are known; measure them with `python -m specfit.probe`, "
                "set them, or use prefetch=off"
            )
        if not profile.overlap:
            raise SpecfitError(
                f"with gpu={profile.name} copying and computing take turns (gpu.overlap is false, "
                "as on a CPU), so no copy ahead of demand is free; use prefetch=off"
            )
        copy = round(billing.expert_bytes / profile.link_gbps)
        layers = billing.layers
        return cls(
            copy * billing.layer_scale,
            -(-copy // PIECES),
            billing.layer_scale,
            round(profile.draft_level_ms * 1e6),
            round(route_ms * 1e6),
            round(profile.selection_ms * 1e6),
            profile.fixed_ms * 1e6 / layers,
            profile.node_ms * 1e6 / layers,
            profile.tree_ms * 1e6 / layers,
        )

    def whole_pieces(self, ns: float) -> int:
        """Of a free stretch, what pieces that end within it fill."""
        return int(ns) // self.piece_ns * self.piece_ns

    def before_routes(self, nodes: int) -> int:
        """Usable time of one own layer's fixed part, over the billed layers it stands for."""
        base = self.fixed_ns + self.node_ns * nodes + (self.tree_ns if nodes else 0.0)
        return self.scale * self.whole_pieces(base)

    def drafting(self, phase: str) -> int:
        """Usable time of one draft level, one read of routes, or a cycle's selection."""
        ns = {"level": self.level_ns, "route": self.route_ns, "select": self.select_ns}[phase]
        return self.whole_pieces(ns)
