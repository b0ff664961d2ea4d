"""Plain data every room may import; nothing here imports another room.

Shapes: N pool nodes, L layers, E experts per layer, k routed experts per row, T rows of a forward.
Node index -1 is the root (the last committed token), which is always verified and never counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.integer[Any]]

PROBABILITY_ONE = 1 << 20
"""Path probabilities are integers in units of 2**-20, so a reward is an exact integer sum."""

CHANCE_ONE = 1 << 8
"""Chances that a row uses an expert are bytes in units of 2**-8: the most is just below certain."""

ROOT = -1

NOT_A_TOKEN = -1
"""The next token after a row whose logits are not finite; equals no drafted token."""

RequestId = Annotated[str, "The workload's name for the request."]
CycleIndex = Annotated[int, "0 is prefill and is in no per-cycle or decode ratio."]


class SpecfitError(Exception):
    """What is wrong with the run, in one sentence that also says what would be right (exit 2)."""


class RequestError(Exception):
    """What is wrong with one request: it becomes a row with a status, and the run goes on."""


@dataclass(frozen=True, eq=False)
class Request:
    """One prompt to decode; `reference` is what a scorer compares with."""

    request_id: str
    prompt_ids: IntArray  # [P]
    max_new_tokens: int
    stop_ids: frozenset[int]
    reference: str | None = None
    cut_tokens: int = 0  # document tokens the workload's own limit removed

    def __post_init__(self) -> None:
        assert len(self.prompt_ids) > 0, "a request needs at least one prompt token"
        assert self.max_new_tokens > 0, "a request needs room for at least one token"


@dataclass(frozen=True, eq=False)
class DraftTree:
    """The pool: drafted nodes in level order, an order that never changes as levels are added."""

    tokens: IntArray  # [N]
    parents: IntArray  # [N], ROOT or an earlier node
    depths: IntArray  # [N], 1 for children of the root
    path_probs: IntArray  # [N], units of 2**-20

    def __post_init__(self) -> None:
        n = len(self.tokens)
        assert len(self.parents) == len(self.depths) == len(self.path_probs) == n
        index = np.arange(n)
        assert ((self.parents >= ROOT) & (self.parents < index)).all(), "parents come first"
        inner = self.parents >= 0
        above = self.parents[inner]
        assert (self.depths[inner] == self.depths[above] + 1).all(), "a child is one deeper"
        assert (self.depths[~inner] == 1).all(), "children of the root have depth 1"
        assert (self.depths[1:] >= self.depths[:-1]).all(), "nodes are in level order"
        assert (self.path_probs[inner] <= self.path_probs[above]).all(), "p(child) <= p(parent)"
        assert ((self.path_probs >= 0) & (self.path_probs <= PROBABILITY_ONE)).all()

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def levels(self) -> int:
        """Drafted levels."""
        return int(self.depths[-1]) if len(self) else 0

    @classmethod
    @cache
    def empty(cls) -> DraftTree:
        """One for all: there is nothing in it to change."""
        none = np.zeros(0, dtype=np.int64)
        return cls(none, none, none, none)

    def grown(self, tokens: IntArray, parents: IntArray, path_probs: IntArray) -> DraftTree:
        """This pool with one more level; `parents` index this pool (ROOT for the first level)."""
        depths = np.full(len(tokens), self.levels + 1, dtype=np.int64)
        return DraftTree(
            np.concatenate([self.tokens, tokens]),
            np.concatenate([self.parents, parents]),
            np.concatenate([self.depths, depths]),
            np.concatenate([self.path_probs, path_probs]),
        )

    @classmethod
    def checked(
        cls, tokens: IntArray, parents: IntArray, depths: IntArray, path_probs: IntArray
    ) -> DraftTree:
        """A pool whose invariants have been checked before, many pools at a time."""
        tree = object.__new__(cls)
        tree.__dict__.update(tokens=tokens, parents=parents, depths=depths, path_probs=path_probs)
        return tree

    def upto(self, levels: int) -> DraftTree:
        """The pool as it was after `levels`; a part of a checked pool needs no check."""
        end = int(np.searchsorted(self.depths, levels, side="right"))
        return DraftTree.checked(
            self.tokens[:end], self.parents[:end], self.depths[:end], self.path_probs[:end]
        )

    def path(self, node: int) -> tuple[int, ...]:
        """Node indices from the root's child down to `node`."""
        chain: list[int] = []
        while node != ROOT:
            chain.append(node)
            node = int(self.parents[node])
        return tuple(reversed(chain))

    @cached_property
    def ancestry(self) -> NDArray[np.bool_]:
        """[N, N]: row i is True at i and at every ancestor of i."""
        seen = np.eye(len(self), dtype=np.bool_)
        for node in range(len(self)):
            parent = int(self.parents[node])
            if parent != ROOT:
                seen[node] |= seen[parent]
        return seen


@dataclass(frozen=True, eq=False)
class Routes:
    """Experts of the root and of every pool node, per layer; a source that predicts may also say
    how sure it is."""

    root: IntArray  # [L, k]
    nodes: IntArray  # [N, L, k]
    # [1 + N, L, E], units of 2**-8, row 0 the root's: that a row uses an expert *if no row above it
    # does*, so that the product of what is left over a path is the chance that no row uses it
    chances: NDArray[np.uint8] | None = None

    def __post_init__(self) -> None:
        assert self.nodes.ndim == 3 and self.nodes.shape[1:] == self.root.shape
        assert self.chances is None or len(self.chances) == 1 + len(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True)
class Selection:
    """What is verified. The last three are None for selectors that predict or search nothing."""

    nodes: tuple[int, ...]  # ascending
    predicted_reward: int | None = None  # units of 2**-20, the root's own 1 included
    predicted_ns: int | None = None
    searched_subtrees: int | None = None

    def check(self, tree: DraftTree, k: int) -> None:
        """Invariant 2: ancestor-closed, ascending, at most min(k, drafted) nodes."""
        chosen = {ROOT, *self.nodes}
        assert len(chosen) - 1 == len(self.nodes) <= min(k, len(tree)), "too many or repeated nodes"
        assert list(self.nodes) == sorted(self.nodes), "nodes are ascending"
        parents = tree.parents.tolist()
        assert all(parents[node] in chosen for node in self.nodes), "not ancestor-closed"


@dataclass(frozen=True, eq=False)
class ForwardTrace:
    """What one on-clock forward asked of the expert cache; enough to bill it, no tensors.

    `wait_for[l, j]` names, for the j-th miss of layer l, the item of that layer's compute order
    (hits first, then misses) that must have run before the copy may start, or -1.
    """

    billed_rows: int  # verified nodes (root not counted), or prompt tokens of a prefill chunk
    is_prefill: bool
    hits: IntArray  # [L]
    misses: IntArray  # [L]
    evictions: IntArray  # [L]
    wait_for: IntArray  # [L, max misses]
    transfer_wait_ns: int = 0  # measured by the copy engine; 0 where nothing is measured
    prefetched: int = 0  # experts copied before they were demanded, in the drafting before it too
    used: int = 0  # of them, those that this forward then demanded; they count as hits
    on_host: IntArray | None = None  # [L] misses that ran on the host instead; None: none did
    ram_hits: int | None = None  # of misses and prefetched, copied from RAM's slots; None without
    reads: int | None = None  # of misses and prefetched, read from disk into RAM; None without

    def __post_init__(self) -> None:
        assert len(self.hits) == len(self.misses) == len(self.evictions) == len(self.wait_for)
        assert self.used or (self.evictions <= self.misses).all(), "only a load evicts"
        assert 0 <= self.used <= self.prefetched, "what is used early was copied early"

    @property
    def demand(self) -> IntArray:
        """[L] distinct experts of the forward's rows."""
        moved = self.hits + self.misses
        return moved if self.on_host is None else moved + self.on_host


@dataclass(frozen=True)
class CycleRecord:
    """One row of cycles.parquet: integers and nanoseconds, no ratio, no mean.

    A field is a column, and its text the column's meaning: the row files and their documentation
    are made from these.
    """

    request_id: RequestId
    cycle: CycleIndex
    context_tokens: Annotated[int, "Prompt and committed tokens when the cycle starts."]
    drafted_levels: Annotated[int, "Levels of the tree that were drafted."]
    pool_nodes: Annotated[int, "Drafted nodes, root not counted."]
    verified_nodes: Annotated[int, "Selected nodes, root not counted."]
    accepted_tokens: Annotated[int, "Draft tokens kept, without the target's own token."]
    committed_tokens: Annotated[int, "Tokens added to the output."]
    stop_reason: Annotated[str | None, "eos, length, or null where decoding goes on."]
    demand_experts: Annotated[int, "Distinct experts of the verified rows, over all layers."]
    hit_experts: Annotated[int, "Demanded and resident."]
    transferred_experts: Annotated[int, "Copied on demand."]
    prefetched_experts: Annotated[int, "Copies begun before they were demanded."]
    host_experts: Annotated[int, "Missing and run on the host instead of copied."]
    transferred_bytes: Annotated[int, "Bytes copied, at the run's own expert size."]
    billed_bytes: Annotated[int, "Bytes copied, as the clock bills them."]
    evicted_experts: Annotated[int, "Residents that made room."]
    peak_layer_demand: Annotated[int, "Demand of the layer that demanded most."]
    route_mismatches: Annotated[
        int | None,
        "Routed (row, layer, expert) that the selector's routes had not named: near-ties "
        "of an atlas, or simulated noise.",
    ]
    draft_ns: Annotated[int, "Re-extension and drafting."]
    route_ns: Annotated[int, "A route source on the clock; 0 for an atlas."]
    select_ns: Annotated[int, "Atlas conversion and selection."]
    verify_ns: Annotated[int, "The target's forward, waiting for copies included."]
    transfer_wait_ns: Annotated[int, "Part of verify_ns spent waiting for copies."]
    commit_ns: Annotated[int, "KV compaction and bookkeeping."]
    cycle_ns: Annotated[int, "draft + route + select + verify + commit."]
    predicted_reward: Annotated[int | None, "The selector's reward, in units of 2**-20."]
    predicted_ns: Annotated[int | None, "The selector's cost of a whole cycle."]
    searched_subtrees: Annotated[int | None, "Legal subtrees looked at."]
    used_prefetched_experts: Annotated[
        int | None, "Prefetched and then demanded: hits without a slot. Null without prefetching."
    ] = None
    ram_hit_experts: Annotated[
        int | None, "Copies of what RAM's slots held; null without offload.ram_slots."
    ] = None
    read_experts: Annotated[
        int | None,
        "Copies that were read from disk; null without offload.ram_slots (a disk tier then reads "
        "every copy).",
    ] = None
    read_bytes: Annotated[
        int | None, "Bytes read from disk, at the run's own expert size; null as read_experts."
    ] = None

    def __post_init__(self) -> None:
        phases = self.draft_ns + self.route_ns + self.select_ns + self.verify_ns + self.commit_ns
        assert self.cycle_ns == phases, "a cycle is the sum of its phases"
        assert self.transfer_wait_ns <= self.verify_ns, "waiting for copies lies inside verify"
        assert (
            self.hit_experts + self.transferred_experts + self.host_experts == self.demand_experts
        )
        if self.read_experts is not None and self.ram_hit_experts is not None:
            copied = self.transferred_experts + self.prefetched_experts
            assert self.ram_hit_experts + self.read_experts == copied, "copies come out of RAM"
        assert self.accepted_tokens <= self.verified_nodes
        assert self.committed_tokens == self.accepted_tokens + 1 or self.stop_reason is not None
        assert 0 <= self.accepted_tokens <= self.committed_tokens

    @classmethod
    def columns(cls) -> list[str]:
        return [field.name for field in fields(cls)]


@dataclass(frozen=True)
class CycleTiming:
    """What is measured beside the clock, on every clock: never byte-compared."""

    request_id: RequestId
    cycle: CycleIndex
    elapsed_ns: Annotated[int, "What a person waited for this cycle."]
    atlas_ns: Annotated[int, "Part of it spent on the atlas, off the clock."]
    selection_ns: Annotated[int, "Real time of the selector."]


@dataclass(frozen=True)
class Score:
    """What a scorer says of one output, higher is better; None where it says nothing.

    `value` is the workload's own measure; summaries have the four ROUGE F1 beside it. `control` is
    the same measure of the same output against another example's reference.
    """

    value: float | None = None
    rouge1: float | None = None
    rouge2: float | None = None
    rougel: float | None = None
    rougelsum: float | None = None
    control: float | None = None


@dataclass(frozen=True)
class RequestRecord:
    """One row of requests.parquet. A failed request has a status and nulls."""

    request_id: RequestId
    prompt_tokens: Annotated[int | None, "Tokens of the prompt."]
    cut_tokens: Annotated[int | None, "Document tokens that the workload's own limit removed."]
    output_ids: Annotated[Sequence[int] | None, "Committed token ids, the stop token included."]
    output_text: Annotated[str | None, "The output as text."]
    score: Annotated[float | None, "The workload's score of the output."]
    prefill_ns: Annotated[int | None, "cycle_ns of cycle 0."]
    decode_ns: Annotated[int | None, "Sum of cycle_ns of the later cycles."]
    cycles: Annotated[int | None, "Cycles, prefill included."]
    status: Annotated[str, "ok, or why the request failed."]
    rouge1: Annotated[float | None, "F1 of ROUGE-1, words stemmed, of a summary."] = None
    rouge2: Annotated[float | None, "F1 of ROUGE-2, words stemmed, of a summary."] = None
    rougel: Annotated[float | None, "F1 of ROUGE-L, words stemmed, of a summary."] = None
    rougelsum: Annotated[float | None, "F1 of ROUGE-Lsum, words stemmed, of a summary."] = None
    score_control: Annotated[
        float | None, "The score of the same output against another request's reference."
    ] = None
    cluster: Annotated[
        str | None, "Template of a generated problem, kind of event of a generated report."
    ] = None
