"""Acceptance as a dial: recorded requests with trees drawn from a stated process.

The process, of a pool of the paper's shape (two children of the root, then two of each of the two
most probable nodes of the newest level, five levels):

- A head is sure of its best child by c ~ Beta(m_d * SPREAD, (1 - m_d) * SPREAD) at depth d, with
  m_d = m * DECAY ** (d - 1): acceptance falls with depth, and SPREAD below 2 makes heads that are
  often sure and often not. Its second child has (1 - c) * SECOND, and never more than c.
- These chances are true: below an accepted node the first child is the target's with chance c, the
  second with its own, else neither. Path probabilities are their products.
- m is set so that EAGLE-3 (the seven most probable nodes) commits the wanted tokens a cycle on
  average over positions with five tokens of text ahead.

Prompts, output lengths and positions stay the recorded ones; token ids mean nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from specfit.base.types import PROBABILITY_ONE, ROOT, SpecfitError
from specfit.storage.recording.files import Recording
from specfit.storage.recording.requests import Pools, RecordedRequest

LEAST, MOST = 1.2, 5.0
SPREAD, DECAY, SECOND = 1.5, 0.97, 0.5
LEVELS, TOP_K, VERIFIED = 5, 2, 7
NODES = TOP_K + TOP_K * TOP_K * (LEVELS - 1)

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Draws:
    """Uniform numbers of n positions, the same whatever m is: [n, PARENTS] for each parent."""

    confidence: Floats
    truth: Floats

    @classmethod
    def of(cls, positions: int, rng: np.random.Generator) -> Draws:
        parents = 1 + TOP_K * (LEVELS - 1)
        drawn = rng.random((2, positions, parents))
        return cls(*drawn)


def with_acceptance(donor: Recording, committed: float, seed: int) -> Recording:
    """The donor's requests and questions under trees of the process, so tuned that EAGLE-3 commits
    `committed` tokens a cycle. Raises SpecfitError outside LEAST .. MOST."""
    if not LEAST <= committed <= MOST:
        raise SpecfitError(
            f"model.acceptance is {committed:g} committed tokens a cycle; use {LEAST} to {MOST:g}, "
            "or null for the recorded trees"
        )
    rng = np.random.default_rng([seed, 2])
    every = [*donor.requests, *donor.calibration]
    draws = [Draws.of(one.positions, rng) for one in every]
    mean = tuned(every, draws, committed)
    vocabulary = donor.shape.vocabulary
    redrawn = [
        _redrawn(one, drawn, mean, vocabulary) for one, drawn in zip(every, draws, strict=True)
    ]
    cut = len(donor.requests)
    return replace(donor, requests=redrawn[:cut], calibration=redrawn[cut:])


def tuned(every: Sequence[RecordedRequest], draws: Sequence[Draws], committed: float) -> float:
    """The m at which EAGLE-3 commits so many tokens on average; to 1e-4."""
    whole = [_positions_with_text(one) for one in every]
    joined = Draws(
        *(
            np.concatenate([getattr(d, name)[rows] for d, rows in zip(draws, whole, strict=True)])
            for name in ("confidence", "truth")
        )
    )
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        if mean_committed(joined, middle) < committed:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def mean_committed(draws: Draws, mean: float) -> float:
    """Of EAGLE-3, the bonus token included."""
    probs, _, accepted = draw_pools(draws, mean)
    best = np.argsort(-probs, axis=1, kind="stable")[:, :VERIFIED]
    return 1.0 + float(np.take_along_axis(accepted, best, axis=1).sum(axis=1).mean())


def draw_pools(draws: Draws, mean: float) -> tuple[Floats, NDArray[np.int64], NDArray[np.bool_]]:
    """(path probabilities, parents, accepted), [n, NODES] each, in level order."""
    n = len(draws.truth)
    rows = np.arange(n)[:, None]
    probs, parents = np.empty((n, NODES)), np.empty((n, NODES), dtype=np.int64)
    accepted = np.zeros((n, NODES), dtype=np.bool_)
    beam = np.full((n, 1), ROOT)
    above, true = np.ones((n, 1)), np.ones((n, 1), dtype=np.bool_)
    first = used = 0
    for depth in range(1, LEVELS + 1):
        width = beam.shape[1]
        m = min(max(mean * DECAY ** (depth - 1), 1e-4), 1 - 1e-4)
        confidence = draws.confidence[:, used : used + width]
        sure = betaincinv(m * SPREAD, (1 - m) * SPREAD, confidence)
        best, other = sure, np.minimum(sure, (1 - sure) * SECOND)
        truth = draws.truth[:, used : used + width]
        is_best, is_other = truth < best, (truth >= best) & (truth < best + other)
        end = first + 2 * width
        probs[:, first:end] = np.stack([above * best, above * other], axis=2).reshape(n, -1)
        parents[:, first:end] = np.repeat(beam, 2, axis=1)
        marks = np.stack([true & is_best, true & is_other], axis=2).reshape(n, -1)
        accepted[:, first:end] = marks
        newest = np.argsort(-probs[:, first:end], axis=1, kind="stable")[:, :TOP_K]
        beam = np.sort(newest, axis=1) + first
        above, true = probs[rows, beam], accepted[rows, beam]
        first, used = end, used + width
    return probs, parents, accepted


def _positions_with_text(one: RecordedRequest) -> NDArray[np.int64]:
    """Those from which a whole path can be accepted."""
    return np.arange(max(0, one.positions - LEVELS + 1))


def _redrawn(one: RecordedRequest, draws: Draws, mean: float, vocabulary: int) -> RecordedRequest:
    if one.pools is None or one.output_ids is None:
        return one
    probs, parents, accepted = draw_pools(draws, mean)
    n = one.positions
    depth = np.repeat(np.arange(1, LEVELS + 1), [TOP_K] + [TOP_K * TOP_K] * (LEVELS - 1))
    ahead = np.arange(n)[:, None] + depth  # place in the output that a node stands for
    accepted &= ahead < len(one.output_ids)
    text = one.output_ids[np.minimum(ahead, len(one.output_ids) - 1)]
    other = (text + 1 + np.arange(NODES)) % vocabulary  # siblings differ, and from the text
    quantised = np.rint(probs * PROBABILITY_ONE).astype(np.int64)
    above = np.where(parents == ROOT, PROBABILITY_ONE, np.take_along_axis(
        quantised, np.maximum(parents, 0), axis=1))  # fmt: skip
    assert bool(np.all(quantised <= above)), "rounding is monotone"
    pools = Pools(
        np.arange(n + 1, dtype=np.int64) * NODES,
        np.where(accepted, text, other).reshape(-1),
        parents.reshape(-1),
        quantised.reshape(-1),
        accepted.reshape(-1),
        np.zeros((n * (NODES + 1), *one.pools.routes.shape[1:]), dtype=np.uint8),
    )
    return replace(one, pools=pools)
