"""The search with the coverage bound, for pools where the cheap bound leaves millions of subtrees.

Order, answer and tie-breakers are those of `search`; only what is proved unable to hold the answer
is left out. That bound charges an extension nothing for its experts. This one does:

**Weights.** At a subtree S of d nodes let C be its candidates: every legal extension in the branch
is S + X with X a non-empty subset of C, |X| <= M = limit - d. For a pair e = (layer, expert) that
neither root nor S has, let n_e be the number of candidates that use it, q_e the least power of two
>= min(n_e, M) (or any more), and w(x) = sum over the new pairs e of x of 1 / q_e. Each new pair of
X is used by at most min(n_e, |X|) <= q_e of its members, so their shares of it sum to at most 1:

    F(S + X) - F(S)  >=  sum over x in X of w(x).                                           (1)

**Joint bound.** Let l be `price`, or for the ratio the incumbent's value. By (1), in reals,

    R(S + X) - l T(S + X)  <=  R(S) - l beta F(S) - l b_{d+m} + sum over X of (p_x - l beta w(x)),

m = |X|. An X that holds v has m - 1 other members, so with g_1 >= g_2 >= .. the gains p - l beta w
of all candidates in order, the right side is at most H + g(v), where H is the largest, over
m <= M, of R(S) - l beta F(S) - l b_{d+m} + g_1 + .. + g_{m-1}. (If v is itself among the m - 1
first, the others sum to no more than g_1 + .. + g_m - g(v), and g(v) >= g_m.) Where H + g(v) is
below what the incumbent has (0 for the ratio, since R - l T < 0 iff R / T < l; its value for a
price), **no extension with v can replace it: v stops being a candidate in the whole branch**, and
so do its descendants. Fewer candidates mean larger weights, so this repeats until none leaves.

*Rounding.* The test asks for a deficit of `slack` = 2**-30 of D = (K + 1) 2**20 + |value|, where
(K + 1) 2**20 bounds every reward. At most K + 8 roundings enter H + g(v), each of a quantity that
either is at most 2 D or makes the sum negative beyond any doubt, so with K < 2**16 the error is
below (K + 8) 2**-52 D < slack / 4; the canonical score errs by at most 2**-51 D. So what is dropped
scores strictly below the incumbent, canonically.

**Separate bound.** Ties must go too, or a pool of equal nodes is enumerated whole. With W_m the sum
of the m smallest weights and P_m of the m largest probabilities, F(S + X) is an integer, hence >=
F(S) + ceil(W_m), and R(S + X) <= R(S) + P_m exactly: the canonical score of that pair bounds S + X
as in `may_improve`, ties included.

Beside the bounds, the first incumbent is the value of a greedy subtree, or of the best that the
search before met: it is attained, so the answer scores at least as much, and until a subtree is met
that attains it, ties are let through.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from specfit.base.types import PROBABILITY_ONE, IntArray
from specfit.selection.bitmaps import Bits, popcount
from specfit.selection.cost import FloatArray, Rule, score
from specfit.selection.greedy import greedy_subtree
from specfit.selection.search_steps import copy_root, extend

PLANES = 5  # pairs are told apart by whether 1, 2, 4, 8 or 16 candidates share them, or more
SLACK = 2.0**-30


class Scratch(NamedTuple):
    """Buffers of the covered search, N nodes and M words at most."""

    candidates: NDArray[np.bool_]  # [K + 1, N], of every subtree on the path
    planes: Bits  # [PLANES + 1, M]
    gains: FloatArray  # [N], p - l beta w
    leading: FloatArray  # [K + 1], the largest gains, descending
    probable: IntArray  # [K + 1], the largest probabilities, descending
    light: IntArray  # [K + 1], the smallest weights, ascending
    demands: IntArray  # [K + 1], F of every subtree on the path

    @classmethod
    def reserve(cls, k: int, nodes: int, width: int) -> Scratch:
        return cls(
            np.empty((k + 1, nodes), dtype=np.bool_),
            np.empty((PLANES + 1, width), dtype=np.uint64),
            np.empty(nodes),
            np.empty(k + 1),
            np.empty(k + 1, dtype=np.int64),
            np.empty(k + 1, dtype=np.int64),
            np.empty(k + 1, dtype=np.int64),
        )


@njit(cache=True, inline="always")
def _insert(ranked: Any, length: int, most: int, value: Any) -> int:
    """Keep the `most` largest values seen, descending; returns how many there are now."""
    if length == most:
        if value <= ranked[most - 1]:
            return length
        length -= 1
    at = length
    while at > 0 and ranked[at - 1] < value:
        ranked[at] = ranked[at - 1]
        at -= 1
    ranked[at] = value
    return length + 1


@njit(cache=True)
def _count_users(covered: Bits, rows: Bits, candidates: Any, planes: Bits) -> int:
    """planes[i] = pairs new to S that at most 2**i candidates use, planes[PLANES] = all new ones.

    While counting, plane 0 says "used", planes 1..4 are the binary digits of (users - 1), and the
    last one says "16 or more beyond the first". Returns the number of candidates.
    """
    width = rows.shape[1]
    planes[:, :] = 0
    count = 0
    for node in range(candidates.shape[0]):
        if not candidates[node]:
            continue
        count += 1
        for word in range(width):
            fresh = rows[1 + node, word] & ~covered[word]
            carry = fresh & planes[0, word]
            planes[0, word] |= fresh
            for digit in range(1, PLANES):
                old = planes[digit, word]
                planes[digit, word] = old ^ carry
                carry &= old
            planes[PLANES, word] |= carry
    for word in range(width):
        above = planes[PLANES, word]
        fresh = ~covered[word]
        planes[PLANES, word] = fresh
        for digit in range(PLANES - 1, 0, -1):
            digit_bits = planes[digit, word]
            planes[digit, word] = fresh & ~above
            above |= digit_bits
        planes[0, word] = fresh & ~above
    return count


@njit(cache=True)
def _weight(row: Bits, planes: Bits, halvings: int) -> Any:
    """w of one candidate in units of 2**-halvings, 2**halvings >= M.

    A pair of at most 2**i users counts 1 + (1 + 2 + .. + 2**(halvings - i - 1)), its share of
    2**halvings; where halvings > PLANES the lowest terms are missing, so it counts less.
    """
    bits = np.uint64(0)
    for word in range(row.shape[0]):
        bits += popcount(row[word] & planes[PLANES, word])
    total = np.int64(bits)
    for digit in range(min(halvings, PLANES)):
        bits = np.uint64(0)
        for word in range(row.shape[0]):
            bits += popcount(row[word] & planes[digit, word])
        total += np.int64(bits) << (halvings - digit - 1)
    return total


@njit(cache=True, inline="always", error_model="numpy")
def _separate_bound(
    rule: Rule,
    depth: int,
    most: int,
    reward: int,
    demand: int,
    halvings: int,
    scratch: Scratch,
    top: float,
    size: int,
) -> bool:
    """`may_improve` with the demand that the lightest candidates must add; see the module."""
    weight = np.int64(0)
    for m in range(1, most + 1):
        reward += scratch.probable[m - 1]
        weight += -scratch.light[m - 1]
        added = (weight + (np.int64(1) << halvings) - 1) >> halvings
        bound = score(rule, reward, depth + m, demand + added)
        if bound > top or (bound == top and depth + m < size):
            return True
    return False


@njit(cache=True, error_model="numpy")
def _trim(
    rule: Rule,
    limit: int,
    depth: int,
    parents: IntArray,
    probs: IntArray,
    rows: Bits,
    covered: Bits,  # [M], root and S
    member: Any,
    reward: int,
    demand: int,
    scratch: Scratch,
    top: float,
    size: int,
) -> bool:
    """Drop candidates that no improvement can hold; False where none is left."""
    nodes, most = parents.shape[0], limit - depth
    candidates = scratch.candidates[depth, :nodes]
    gains, leading = scratch.gains, scratch.leading
    halvings = 0
    while (1 << halvings) < most:
        halvings += 1
    price = top if rule.by_ratio else rule.price
    floor = 0.0 if rule.by_ratio else top
    floor -= SLACK * ((limit + 1) * float(PROBABILITY_ONE) + abs(floor))
    per_weight = price * rule.expert_ns / (1 << halvings)
    while True:
        for node in range(nodes):  # an ancestor that left takes its descendants along
            above = parents[node]
            if not (member[above + 1] or candidates[above]):
                candidates[node] = False
        if _count_users(covered, rows, candidates, scratch.planes) == 0:
            return False
        first = second = third = 0
        for node in range(nodes):
            if candidates[node]:
                weight = _weight(rows[1 + node], scratch.planes, halvings)
                gains[node] = probs[node] - per_weight * weight
                first = _insert(leading, first, most, gains[node])
                second = _insert(scratch.probable, second, most, probs[node])
                third = _insert(scratch.light, third, most, -weight)
        if not _separate_bound(rule, depth, first, reward, demand, halvings, scratch, top, size):
            return False
        sum_before = reward - price * rule.expert_ns * demand
        head = -np.inf
        for m in range(1, first + 1):
            head = max(head, sum_before - price * rule.intercepts_ns[depth + m])
            sum_before += leading[m - 1]
        dropped = False
        for node in range(nodes):
            if candidates[node] and head + gains[node] < floor:
                candidates[node] = False
                dropped = True
        if not dropped:
            return True


@njit(cache=True, error_model="numpy")
def search_covered(
    by_ratio: bool,
    price: float,
    intercepts: FloatArray,
    expert_ns: float,
    limit: int,
    parents: IntArray,  # [N]
    probs: IntArray,  # [N]
    rows: Bits,  # [>= 1 + N, M]
    union: Bits,  # [K + 1, M]
    member: Any,  # [> N]
    state: IntArray,  # [4, K + 1]: best, path, unused, rewards
    candidates: Any,
    planes: Bits,
    gains: FloatArray,
    leading: FloatArray,
    probable: IntArray,
    light: IntArray,
    demands: IntArray,
    attained: float,  # the score of some legal subtree
) -> tuple[Any, Any, Any, Any]:
    """Size, reward and demand of `best`, and the number of subtrees evaluated."""
    rule = Rule(by_ratio, price, intercepts, expert_ns)
    scratch = Scratch(candidates, planes, gains, leading, probable, light, demands)
    nodes = parents.shape[0]
    best, path, rewards = state[0], state[1], state[3]
    _size, _reward, _demand, greedy = greedy_subtree(
        rule, limit, parents, probs, rows, union, member, path
    )
    top = max(attained, greedy)
    member[1 : nodes + 1] = False
    rewards[0], demands[0] = PROBABILITY_ONE, copy_root(union, rows)
    size, reward, demanded, searched, depth = limit + 1, rewards[0], demands[0], 1, 0
    if score(rule, reward, 0, demanded) >= top:
        size = 0
    candidates[0, :nodes] = True
    while True:
        here = candidates[depth, :nodes]
        if depth == limit or not _trim(
            rule, limit, depth, parents, probs, rows, union[depth], member, rewards[depth],
            demands[depth], scratch, top, size,
        ):  # fmt: skip
            if depth == 0:
                return size, reward, demanded, searched
            depth -= 1
            member[path[depth] + 1] = False
            continue
        node = 0
        while not (here[node] and member[parents[node] + 1]):
            node += 1  # the lowest candidate is there: its parent is selected, or a lower candidate
        here[node] = False
        demands[depth + 1] = extend(union, depth, rows, node)
        rewards[depth + 1] = rewards[depth] + probs[node]
        path[depth] = node
        member[node + 1] = True
        depth += 1
        searched += 1
        candidates[depth, :nodes] = here
        value = score(rule, rewards[depth], depth, demands[depth])
        if value > top or (value == top and depth < size):
            top, size, reward, demanded = value, depth, rewards[depth], demands[depth]
            best[:depth] = path[:depth]
