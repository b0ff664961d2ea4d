"""A chain's length from acceptance, the link and the experts a forward is expected to need."""

from __future__ import annotations

from dataclasses import dataclass

from specfit.base.interfaces import Selector
from specfit.base.types import CycleRecord, DraftTree, Routes, Selection, SpecfitError
from specfit.selection.baselines.fixed import best_chain
from specfit.selection.mean_by_size import BySize


@dataclass(frozen=True)
class LinkCosts:
    """A profile's constants, per expert of one of the run's own layers."""

    fixed_ns: float  # per cycle
    draft_level_ns: float
    node_ns: float
    expert_ns: float  # compute
    copy_ns: float


class MoeSpeq(Selector):
    """`moe_speq`: the chain length of most expected tokens per predicted cycle time.

    MoE-SpeQ (arXiv 2511.14102) offloads experts, drafts a chain with a small twin of the target,
    prefetches the experts that the draft names and lets a governor choose the length k by accepted
    tokens over cycle time, transfers over the link being a term of it. No code and no coefficients
    were public.

    *Ours*, for the length rule alone: tokens are 1 + a + .. + a^k, a being the accepted share of
    drafted tokens that were decided in the run so far (one accepted, one rejected to begin with).
    T(k) = fixed + k (draft level + node) + D(k) (expert + m copy): constants of the profile, D(k)
    the mean demand of calibration probes of the k most probable nodes, m the share of demanded
    experts that decode had to move so far (1 to begin with). Copies hide behind nothing, as
    on-demand copies do here. k is at least 1, since no switching off is known of; k levels are
    drafted. Prefetching is the run's own setting, not this rule's.
    """

    drafts = True
    reads_routes = False
    adaptive_depth = False

    def __init__(self, sizes: BySize, link: LinkCosts, k: int = 7, name: str = "moe_speq") -> None:
        if not 1 <= k <= sizes.k:
            raise SpecfitError(
                f"selector.k is {k}; selector={name} needs 1 or more, and at most the {sizes.k} "
                "nodes that its calibration timed"
            )
        self.name = name
        self.k = k
        self._sizes, self._link = sizes, link
        self._accepted = self._rejected = 1
        self._demanded = self._moved = 0

    def length(self) -> int:
        """k of the coming cycle; ties: the shorter."""
        a = self._accepted / (self._accepted + self._rejected)
        moved = self._moved / self._demanded if self._demanded else 1.0
        link = self._link
        per_expert = link.expert_ns + moved * link.copy_ns
        best, chosen, tokens = 0.0, 1, 1.0
        for k in range(1, self.k + 1):
            tokens += a**k
            steps = k * (link.draft_level_ns + link.node_ns)
            rate = tokens / (link.fixed_ns + steps + per_expert * float(self._sizes.demands[k]))
            if rate > best:
                best, chosen = rate, k
        return chosen

    def draft_levels(self) -> int:
        return self.length()

    def select(self, tree: DraftTree, routes: Routes | None) -> Selection:
        return Selection(best_chain(tree, self.length()))

    def observe(self, record: CycleRecord) -> None:
        if record.cycle == 0:  # prefill: its misses are those of many rows
            return
        self._demanded += record.demand_experts
        self._moved += record.transferred_experts
        if record.stop_reason is None:  # a stop cuts the path: nothing was rejected there
            self._accepted += record.accepted_tokens
            self._rejected += record.accepted_tokens < record.verified_nodes
