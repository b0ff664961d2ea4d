"""Recordings to training rows: one per root and pool node, without a loop over nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from specfit.base.types import PROBABILITY_ONE, ROOT, IntArray
from specfit.decoding.replay.routes import recent_uses
from specfit.models.routes.predictor import DECAYS
from specfit.storage.recording.files import Recording
from specfit.storage.recording.requests import RecordedRequest

LEAST = 0.1
"""A row counts as much as it is likely to be verified: a root always, a node by its path
probability, and not below this."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Letters: R rows, n positions, P distinct parents, F feature width, D decays, L layers,
    E experts, k routed experts."""

    uses: NDArray[np.float16]  # [n, D, L, E]
    position: IntArray  # [R], row of `uses`
    features: NDArray[np.float16]  # [P, F]
    parent: IntArray  # [R], row of `features` that a node was drafted from
    above: IntArray  # [R], the parent's own row among these; a root's is itself
    tokens: IntArray  # [R]
    depths: IntArray  # [R], 0 for a root
    routes: NDArray[np.uint8]  # [R, L, k]
    weights: NDArray[np.float32]  # [R], how often such a row is verified: see `LEAST`

    def __len__(self) -> int:
        return len(self.tokens)


def samples_of(recordings: Sequence[Recording]) -> Samples:
    """Every row of every position; the recordings keep features."""
    parts = [
        _of_request(request, recording.shape.experts)
        for recording in recordings
        for request in recording.requests
        if request.positions
    ]
    columns: dict[str, list[np.ndarray]] = {field.name: [] for field in fields(Samples)}
    positions = parents = rows = 0
    for part in parts:
        shifted = replace(
            part,
            position=part.position + positions,
            parent=part.parent + parents,
            above=part.above + rows,
        )
        positions, parents = positions + len(part.uses), parents + len(part.features)
        rows += len(part)
        for name, column in columns.items():
            column.append(getattr(shifted, name))
    return Samples(**{name: np.concatenate(column) for name, column in columns.items()})


def _of_request(one: RecordedRequest, experts: int) -> Samples:
    """Rows lie as the pools' routes do: each position's root, then its nodes."""
    pools, output_ids = one.pools, one.output_ids
    assert pools is not None and output_ids is not None
    assert pools.features is not None, "record with record.features=true"
    position, parent, above, tokens, depths, weights = [], [], [], [], [], []
    first = row = 0
    for i in range(len(pools)):
        at, expanded = pools.nodes(i), pools.expanded(i)
        drafted_from = np.concatenate([[ROOT], pools.parents[at]])
        position.append(np.full(len(drafted_from), i))
        parent.append(first + np.searchsorted(expanded, drafted_from))
        tokens.append(np.concatenate([output_ids[i : i + 1], pools.tokens[at]]))
        depths.append(np.concatenate([[0], pools.depths[at]]))
        above.append(row + drafted_from + 1)
        above[-1][0] = row
        weights.append(np.concatenate([[1.0], pools.path_probs[at] / PROBABILITY_ONE]))
        first, row = first + len(expanded), row + len(drafted_from)
    uses = [use.astype(np.float16) for use in recent_uses(one, DECAYS, experts)]
    columns = (np.concatenate(column) for column in (position, parent, above, tokens, depths))
    return Samples(
        **dict(zip(("position", "parent", "above", "tokens", "depths"), columns, strict=True)),
        uses=np.stack(uses),
        features=pools.features,
        routes=pools.routes,
        weights=np.maximum(np.concatenate(weights), LEAST).astype(np.float32),
    )
