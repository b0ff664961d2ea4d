"""What one cycle leaves: its phase times, its record, its traces. Assembled by the decoder."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from specfit.base.interfaces import Features
from specfit.base.types import (
    CycleRecord,
    CycleTiming,
    DraftTree,
    ForwardTrace,
    IntArray,
    Request,
    Routes,
    Selection,
)


@dataclass
class DecodeState:
    """What changes while one request is decoded."""

    request: Request
    output_ids: list[int] = field(default_factory=list)
    cycle: int = 0
    stop_reason: str | None = None
    fresh_tokens: list[int] = field(default_factory=list)  # committed rows the head has not seen,
    fresh_features: Features = None  # each paired with the feature of the token before it

    @property
    def root(self) -> int:
        """The last committed token."""
        return self.output_ids[-1]

    @property
    def context_tokens(self) -> int:
        """Tokens up to and including the root."""
        return len(self.request.prompt_ids) + len(self.output_ids)


@dataclass
class PhaseTimer:
    """Nanoseconds of one cycle by phase on the run's clock, and what is measured beside it."""

    draft: int = 0
    route: int = 0
    select: int = 0
    verify: int = 0
    wait: int = 0
    commit: int = 0
    begun: int = field(default_factory=time.perf_counter_ns)
    atlas_elapsed: int = 0
    select_elapsed: int = 0

    @property
    def cycle(self) -> int:
        return self.draft + self.route + self.select + self.verify + self.commit


@dataclass(frozen=True, eq=False)
class Drafted:
    """A pool and what of it is verified; empty for prefill and for AR."""

    tree: DraftTree
    routes: Routes | None
    selection: Selection

    @classmethod
    def nothing(cls) -> Drafted:
        return cls(DraftTree.empty(), None, Selection(()))

    @property
    def takes_newest_level(self) -> bool:
        """Whether the selection holds a node of the newest level: then drafting goes on (3.3).

        Nodes ascend in level order, so the last one tells.
        """
        nodes = self.selection.nodes
        return bool(nodes) and int(self.tree.depths[nodes[-1]]) == self.tree.levels


@dataclass(frozen=True)
class Committed:
    tokens: tuple[int, ...]  # what a stop left of them
    accepted: int  # how many of them were drafted


@dataclass(frozen=True, eq=False)
class Cycle:
    """One finished cycle, with the traces a timeline is drawn from."""

    record: CycleRecord
    timing: CycleTiming
    tokens: tuple[int, ...]
    drafted: Drafted
    traces: tuple[ForwardTrace, ...]


def finish(
    session: DecodeState,
    timer: PhaseTimer,
    drafted: Drafted,
    committed: Committed,
    traces: Sequence[ForwardTrace],
    mismatches: int | None,
    expert_bytes: int,
    billed_bytes: int,
    prefetches: bool = False,
) -> Cycle:
    """Counters of the cycle just committed; moves the session on to the next one."""
    hits = _total(trace.hits for trace in traces)
    transferred = _total(trace.misses for trace in traces)
    on_host = _total(trace.on_host for trace in traces if trace.on_host is not None)
    prefetched = sum(trace.prefetched for trace in traces)
    reads = _known(trace.reads for trace in traces)
    tree, selection = drafted.tree, drafted.selection
    record = CycleRecord(
        request_id=session.request.request_id,
        cycle=session.cycle,
        context_tokens=session.context_tokens - len(committed.tokens),
        drafted_levels=tree.levels,
        pool_nodes=len(tree),
        verified_nodes=len(selection.nodes),
        accepted_tokens=committed.accepted,
        committed_tokens=len(committed.tokens),
        stop_reason=session.stop_reason,
        demand_experts=hits + transferred + on_host,
        hit_experts=hits,
        transferred_experts=transferred,
        prefetched_experts=prefetched,
        host_experts=on_host,
        transferred_bytes=(transferred + prefetched) * expert_bytes,
        billed_bytes=billed_bytes,
        evicted_experts=_total(trace.evictions for trace in traces),
        peak_layer_demand=max(max(trace.demand.tolist()) for trace in traces),
        route_mismatches=mismatches,
        draft_ns=timer.draft,
        route_ns=timer.route,
        select_ns=timer.select,
        verify_ns=timer.verify,
        transfer_wait_ns=timer.wait,
        commit_ns=timer.commit,
        cycle_ns=timer.cycle,
        predicted_reward=selection.predicted_reward,
        predicted_ns=selection.predicted_ns,
        searched_subtrees=selection.searched_subtrees,
        used_prefetched_experts=sum(trace.used for trace in traces) if prefetches else None,
        ram_hit_experts=_known(trace.ram_hits for trace in traces),
        read_experts=reads,
        read_bytes=None if reads is None else reads * expert_bytes,
    )
    timing = CycleTiming(
        record.request_id,
        record.cycle,
        elapsed_ns=time.perf_counter_ns() - timer.begun,
        atlas_ns=timer.atlas_elapsed,
        selection_ns=timer.select_elapsed,
    )
    session.cycle += 1
    return Cycle(record, timing, committed.tokens, drafted, tuple(traces))


def _total(per_layer: Iterable[IntArray]) -> int:
    """Over forwards and layers. Lists: for so few numbers numpy's own start costs more."""
    return sum(sum(counts.tolist()) for counts in per_layer)


def _known(counts: Iterable[int | None]) -> int | None:
    """Over forwards; None where one does not say."""
    listed = list(counts)
    known = [count for count in listed if count is not None]
    return sum(known) if len(known) == len(listed) else None
