"""Without the size limit: the best ratio by minimum cuts, in polynomial time (app. A.3).

For intercepts b_k = a + c k with a, c >= 0 the score of a selection at a price l of time is

    R(S) - l T(S) = (1 - l A) + sum over v in S of (p_v - l c) - l beta N(S),    A = a + beta F_0,

with F_0 the root's own demand and N(S) the (layer, expert) pairs that S adds to the root's: those
of the root are free and not in the graph. Arcs: source -> v holds p_v, v -> sink holds l c, pair ->
sink holds l beta; v -> parent(v) and v -> its pairs are infinite. A finite cut's source side is
ancestor-closed and holds the pairs of its nodes, so

    max over S of R(S) - l T(S)  =  1 - l A + sum of p_v - (minimum cut),

attained by the draft nodes on the source side; the *inclusion-minimal* source side (what the source
still reaches in the residual graph) lies in every maximiser, so it is the one of fewest nodes.

**Dinkelbach.** From l_0 = the ratio of the empty selection, cut at l_j and take the ratio of what
it selects as l_{j+1}, until the maximum is 0: then l_j is the largest ratio. h(l) = max R - l T is
convex, decreasing, and zero exactly there; h(l_j) > 0 makes l_{j+1} = l_j + h / T > l_j. Source
capacities do not depend on l and sink capacities rise with it (this is where c, beta >= 0 is
needed), so minimal source sides only shrink: S_{j+1} lies in S_j, and S_{j+1} = S_j means
h(l_{j+1}) = 0. So there are at most N + 2 cuts.

**Exactness.** a, c and beta are taken as integers of 2**-q ns, q as large as 63 bits allow; p_v is
an integer already. With l = R / T of integers all capacities times T are integers: p_v T, R c,
R beta. So cuts, nestedness and the stop are exact, no tolerance anywhere. What is rounded is the
cost model, once: not at all if its coefficients are whole nanoseconds, else by less than 2**-q.
The nodes found are then priced by the canonical expression, as the search prices its own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import max_flow

from specfit.base.interfaces import Selector
from specfit.base.types import (
    PROBABILITY_ONE,
    ROOT,
    DraftTree,
    IntArray,
    Routes,
    Selection,
    SpecfitError,
)
from specfit.selection.cost import CostModel

CAPACITY_BITS = 61  # of the sum of source capacities: excess and reverse arcs stay within int64
AFFINE = 1e-9  # relative deviation from a line that is rounding


class Affine(NamedTuple):
    """b_k = base + node k, and the price of an expert, in nanoseconds."""

    base: float
    node: float
    expert: float


class Whole(NamedTuple):
    """The same in integers of 2**-q ns."""

    base: int
    node: int
    expert: int

    def time(self, size: int, demand: int) -> int:
        return self.base + self.node * size + self.expert * demand


class Closed(NamedTuple):
    """The best legal subtree of any size."""

    nodes: tuple[int, ...]  # ascending
    reward: int  # units of 2**-20, the root's own 1 included
    demand: int  # F, root included
    predicted_ns: float
    cuts: int


def affine(cost: CostModel) -> Affine:
    """The line through b_0 .. b_K; refused where they lie on none, or on one that falls."""
    b, k = cost.intercepts_ns, cost.k
    node = float(b[-1] - b[0]) / k if k else 0.0
    line = b[0] + node * np.arange(k + 1)
    off = np.abs(b - line)
    if off.max() > AFFINE * max(1.0, float(b.max())):
        worst = int(off.argmax())
        raise SpecfitError(
            f"the closure needs intercepts b_k = a + c k: b_{worst} is {b[worst] / 1e6:.3f} ms and "
            f"the line through b_0 and b_{k} says {line[worst] / 1e6:.3f} ms; with free intercepts "
            "the best closure is not a minimum cut (use fit_affine, or selector=specfit)"
        )
    if node < 0:
        raise SpecfitError(
            f"the closure needs intercepts that do not fall, and b_0 .. b_{k} fall by "
            f"{-node / 1e6:.3f} ms per node: cuts would not be nested, nor their number bounded"
        )
    if b[0] + cost.expert_ns < 1:
        raise SpecfitError("the closure needs a cost of at least 1 ns for verifying the root")
    return Affine(float(b[0]), node, cost.expert_ns)


class Pairs(NamedTuple):
    """Who uses which pair that the root does not; pairs are numbered by use."""

    users: IntArray  # [U] nodes
    pairs: IntArray  # [U]
    count: int  # type: ignore[assignment]  # shadows tuple.count, which is not used
    root_demand: int

    @classmethod
    def of(cls, routes: Routes, num_experts: int) -> Pairs:
        layers = len(routes.root)
        first = np.arange(layers, dtype=np.int64)[:, None] * num_experts
        root, nodes = routes.root.astype(np.int64), routes.nodes.astype(np.int64)
        ids = np.concatenate([root[None], nodes]) if len(nodes) else root[None]
        assert ids.min() >= 0 and ids.max() < num_experts, "expert ids lie in the layer"
        at_root = np.zeros(layers * num_experts, dtype=np.bool_)
        at_root[root + first] = True
        keys = (nodes + first).reshape(len(nodes), root.size)
        new = ~at_root[keys]
        users, used = np.nonzero(new)[0], keys[new]
        seen = np.zeros(layers * num_experts, dtype=np.bool_)
        seen[used] = True
        number = np.cumsum(seen) - 1
        return cls(users, number[used], int(seen.sum()), int(at_root.sum()))

    def added(self, chosen: NDArray[np.bool_]) -> int:
        """N(S) for `chosen` [N]."""
        seen = np.zeros(self.count, dtype=np.bool_)
        seen[self.pairs[chosen[self.users]]] = True
        return int(seen.sum())


class Network:
    """The cut graph of one pool; between cuts only the sink capacities change.

    Vertices: 0 the source, 1 the sink, then N nodes, then the pairs.
    """

    def __init__(self, tree: DraftTree, pairs: Pairs, cost: Whole, gains: IntArray) -> None:
        """`gains` [N] are p_v."""
        n = len(tree)
        self._nodes, self._pairs, self._cost, self._gains = n, pairs.count, cost, gains
        node = np.arange(2, 2 + n)
        pair = np.arange(2 + n, 2 + n + pairs.count)
        inner = np.flatnonzero(tree.parents != ROOT)
        tails = [np.zeros(n, dtype=np.int64), node, pair, node[inner], node[pairs.users]]
        heads = [node, np.ones(n + pairs.count, dtype=np.int64), node[tree.parents[inner]]]
        heads.append(pair[pairs.pairs])
        self._flow = max_flow.SimpleMaxFlow()
        tail, head = np.concatenate(tails), np.concatenate(heads)
        self._arcs = self._flow.add_arcs_with_capacity(tail, head, np.zeros(len(tail), np.int64))
        self._capacities = np.zeros(len(tail), dtype=np.int64)

    def cut(self, reward: int, time: int) -> NDArray[np.bool_]:
        """[N] the fewest nodes that maximise R - (reward / time) T."""
        n, sinks = self._nodes, 2 * self._nodes + self._pairs
        capacities = self._capacities
        capacities[:n] = self._gains * time
        capacities[n : 2 * n] = reward * self._cost.node
        capacities[2 * n : sinks] = reward * self._cost.expert
        capacities[sinks:] = int(capacities[:n].sum()) + 1
        self._flow.set_arcs_capacity(self._arcs, capacities)
        status = self._flow.solve(0, 1)
        assert status == self._flow.OPTIMAL, f"the maximum flow ended with {status}"
        chosen = np.zeros(n + 2 + self._pairs, dtype=np.bool_)
        chosen[self._flow.get_source_side_min_cut()] = True
        return chosen[2 : 2 + n]


def _whole(cost: Affine, pairs: Pairs, nodes: int, most_reward: int) -> Whole:
    """The coefficients in units of 2**-q ns, q as large as capacities leave room for."""
    longest = cost.base + cost.node * nodes + cost.expert * (pairs.root_demand + pairs.count)
    bits = CAPACITY_BITS - most_reward.bit_length() - math.frexp(longest)[1]
    return Whole(*(round(math.ldexp(value, bits)) for value in cost))


def best_closure(tree: DraftTree, routes: Routes, cost: CostModel, num_experts: int) -> Closed:
    """argmax R / T over legal subtrees of every size; ties as in the search: fewest nodes."""
    nodes = len(tree)
    if nodes > cost.k:
        raise SpecfitError(
            f"the closure verifies any number of nodes, and this pool has {nodes}, but the cost "
            f"model prices at most {cost.k}; selector.k must be at least the pool's size"
        )
    pairs = Pairs.of(routes, num_experts)
    gains = np.asarray(tree.path_probs, dtype=np.int64)
    whole = _whole(affine(cost), pairs, nodes, PROBABILITY_ONE + int(gains.sum()))
    network = Network(tree, pairs, whole, gains)
    nothing = np.zeros(nodes, dtype=np.bool_)
    best = _Priced(nothing, PROBABILITY_ONE, pairs.root_demand, whole.time(0, pairs.root_demand))
    cuts, rises = 0, nodes > 0
    while rises:
        chosen = network.cut(best.reward, best.time)
        cuts += 1
        assert cuts <= nodes + 2, "minimal source sides shrink, so there are few"
        demand = pairs.root_demand + pairs.added(chosen)
        reward = PROBABILITY_ONE + int(gains[chosen].sum())
        time = whole.time(int(chosen.sum()), demand)
        rises = reward * best.time > best.reward * time  # else the maximum is 0, at `chosen`
        best = _Priced(chosen, reward, demand, time)
    found = tuple(np.flatnonzero(best.chosen).tolist())
    predicted = cost.predict_ns(len(found), best.demand)
    return Closed(found, best.reward, best.demand, predicted, cuts)


class _Priced(NamedTuple):
    chosen: NDArray[np.bool_]
    reward: int
    demand: int
    time: int  # in units of 2**-q ns


class Closure(Selector):
    """The ratio rule without K: any legal subtree of the pool (`selector.k` is the pool's size)."""

    drafts = True
    reads_routes = True

    def __init__(
        self,
        cost: CostModel,
        num_experts: int,
        k: int,
        adaptive_depth: bool = True,
        name: str = "closure",
    ) -> None:
        if k > cost.k:
            raise SpecfitError(f"selector.k is {k} but the cost model prices at most {cost.k}")
        affine(cost)
        self.name = name
        self.k = k
        self.adaptive_depth = adaptive_depth
        self._cost = cost
        self._num_experts = num_experts

    def select(self, tree: DraftTree, routes: Routes | None) -> Selection:
        """`searched_subtrees` counts the selections priced: the empty one and one per cut."""
        assert routes is not None and len(routes) == len(tree), "one route per pool node"
        if len(tree) > self.k:
            raise SpecfitError(
                f"the closure has no size limit, so selector.k must be the pool's size: "
                f"it is {self.k}, and the pool has {len(tree)} nodes"
            )
        found = best_closure(tree, routes, self._cost, self._num_experts)
        return Selection(found.nodes, found.reward, round(found.predicted_ns), 1 + found.cuts)
