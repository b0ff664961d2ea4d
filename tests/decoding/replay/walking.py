"""The slow recorder: one cycle after the other through the decoder's own parts, as a run goes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from specfit.base.interfaces import Drafter, RouteSource, Target
from specfit.base.types import DraftTree, Request, Routes
from specfit.decoding.cycle import DecodeState
from specfit.decoding.decoder import Decoder
from specfit.hardware.clock import ModelledClock
from specfit.selection.selectors import NoDraft, TopProbability
from specfit.storage.recording.requests import RecordedRequest, pools_of


def walk(
    request: Request,
    target: Target,
    drafter: Drafter,
    routes: RouteSource,
    clock: ModelledClock,
    prompt_routes: Callable[[], np.ndarray],
    most: int | None = None,
) -> RecordedRequest:
    """`prompt_routes` gives [P, L, k] of the prefill that has just run."""
    walker = Decoder(target, None, None, NoDraft("ar_cache"), clock)
    prefiller = Decoder(target, drafter, None, TopProbability(), clock)
    session = DecodeState(request)
    routes.begin(request)
    prefiller.prefill(session)
    first = np.asarray(prompt_routes()).astype(np.uint8)
    trees: list[DraftTree] = []
    atlases: list[Routes] = []
    while session.stop_reason is None:
        drafter.extend(np.asarray(session.fresh_tokens), session.fresh_features)
        if most is None or len(trees) < most:
            tree = DraftTree.empty()
            for _ in range(drafter.max_depth):
                tree = drafter.grow(tree)
            atlases.append(routes.read(session.root, tree, session.context_tokens))
            routes.end_cycle()
            trees.append(tree)
        walker.cycle(session)
    out = session.output_ids
    pools = pools_of(trees, atlases, out) if trees else None
    return RecordedRequest(
        0,
        request.request_id,
        f"digest of {request.request_id}",
        "ok",
        request,
        np.asarray(out, dtype=np.int64),
        session.stop_reason,
        " ".join(map(str, out)),
        None,
        first,
        pools,
    )
