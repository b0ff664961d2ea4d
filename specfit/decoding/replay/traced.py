"""Real routes under recorded trees: a recording whose model exists as a trace alone (half-real).

Trees, path probabilities and acceptances are a donor recording's (or a stated process's, see
`acceptance.py`); routes are those of real tokens of another model. A request reads one sequence of
the trace from a drawn offset on and never crosses its end: its text has the routes of consecutive
tokens (or walks on by drawn lags). The routes that a rejected node would have had are unknown; a
*grafting* is an assumption about them:

    within_8, within_64   the routes of another token at most so many places from the node's own
                          place in the text. The accepted path is the true text, so acceptance
                          leaks into the routes, in favour of rules that read them
    walk_2, walk_4        a node has the routes 1 to so many places after its parent's, and so has
                          the text: accepted and rejected nodes are drawn alike, no leak
    token_8               as within_8 about the root, with one draw for each token id of a tree:
                          rejected nodes of equal token share their routes

Draws depend on (seed, request, path of tokens), so that a node that two pools share has one route.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from specfit.base.hashing import mix, unit
from specfit.base.types import ROOT, IntArray, SpecfitError
from specfit.decoding.replay.acceptance import with_acceptance
from specfit.storage import identity
from specfit.storage.foreign_traces import RoutingTrace
from specfit.storage.recording.files import Recording, Shape
from specfit.storage.recording.requests import RecordedRequest

WITHIN, WALK, TOKEN = range(3)
GRAFTINGS = {
    "within_8": (WITHIN, 8),
    "within_64": (WITHIN, 64),
    "walk_2": (WALK, 2),
    "walk_4": (WALK, 4),
    "token_8": (TOKEN, 8),
}
LEAKS = ("within_8", "within_64", "token_8")
"""Graftings in which the accepted path has the text's own routes and other nodes have not."""


@dataclass(frozen=True)
class Graft:
    """How routes are put under a recorded tree, and by which draws."""

    name: str
    seed: int = 0

    def __post_init__(self) -> None:
        if self.name not in GRAFTINGS:
            raise SpecfitError(f"model.graft is {self.name!r}; use one of {', '.join(GRAFTINGS)}")


def grafted(
    donor: Recording, sequences: Sequence[NDArray[np.integer]], graft: Graft
) -> tuple[list[RecordedRequest], list[RecordedRequest]]:
    """(requests, calibration questions) of the donor on routes of `sequences` [T, L, k].

    Raises SpecfitError where a request is longer than every sequence.
    """
    requests = [_graft_one(one, sequences, graft, row) for row, one in enumerate(donor.requests)]
    questions = [
        _graft_one(one, sequences, graft, -1 - row) for row, one in enumerate(donor.calibration)
    ]
    return requests, questions


def _graft_one(
    one: RecordedRequest, sequences: Sequence[NDArray[np.integer]], graft: Graft, row: int
) -> RecordedRequest:
    if one.request is None or one.output_ids is None:
        return one
    rng = np.random.default_rng([graft.seed, abs(row), int(row < 0), 1])
    kind, width = GRAFTINGS[graft.name]
    prompt = len(one.request.prompt_ids)
    levels = 0 if one.pools is None else int(one.pools.depths.max())
    text = min(len(one.output_ids), one.positions + 1 + levels)  # of a question, what is probed
    steps = np.ones(text, dtype=np.int64)
    if kind == WALK:
        steps = rng.integers(1, width + 1, text)
    walked = prompt - 1 + np.cumsum(steps)  # places of the text's tokens, from the prompt's first
    need = int(walked[-1]) + 1 + levels * (width if kind == WALK else 1)
    sequence, offset = _draw_place(one.request_id, need, sequences, rng)
    ids = sequences[sequence]
    prompt_routes = ids[offset : offset + prompt].astype(np.uint8)
    if one.pools is None:
        return replace(one, prompt_routes=prompt_routes)
    places = place_nodes(
        kind,
        width,
        int(rng.integers(1 << 62)),
        len(ids),
        offset + walked,
        one.pools.starts,
        one.pools.parents,
        one.pools.tokens,
        one.pools.accepted,
        one.pools.depths,
    )
    pools = one.pools.with_routes(ids[places].astype(np.uint8))
    return replace(one, prompt_routes=prompt_routes, pools=pools)


def _draw_place(
    request: str, need: int, sequences: Sequence[NDArray[np.integer]], rng: np.random.Generator
) -> tuple[int, int]:
    """A sequence and an offset in it, every place from which the request fits alike likely."""
    rooms = np.array([max(len(ids) - need + 1, 0) for ids in sequences])
    if rooms.sum() == 0:
        raise SpecfitError(
            f"{request} needs the routes of {need} tokens in a row, and the trace's longest "
            f"sequence has {max(map(len, sequences))}; use shorter requests (max_new_tokens, "
            "dataset; calibration.dataset_path for questions), or a longer trace"
        )
    at = int(rng.integers(rooms.sum()))
    sequence = int(np.searchsorted(np.cumsum(rooms), at, side="right"))
    return sequence, at - int(rooms[:sequence].sum())


@njit(cache=True)
def place_nodes(
    kind: int,
    width: int,
    seed: int,
    length: int,
    text: IntArray,  # [n + 1] places of the output's tokens
    starts: IntArray,  # [n + 1]
    parents: IntArray,
    tokens: IntArray,
    accepted: NDArray[np.bool_],
    depths: IntArray,
) -> IntArray:
    """[R + n]: the place in the sequence whose routes each root and node takes, as `Pools.routes`
    has them. Behind the output's end a node's own place goes on token by token."""
    positions = starts.shape[0] - 1
    places = np.empty(parents.shape[0] + positions, dtype=np.int64)
    keys = np.empty(parents.shape[0], dtype=np.uint64)
    last = text.shape[0] - 1
    for i in range(positions):
        at = starts[i] + i
        places[at] = text[i]
        root_key = mix(np.uint64(seed), i)
        for node in range(starts[i], starts[i + 1]):
            parent = parents[node]
            of_root = parent == ROOT
            key = mix(root_key if of_root else keys[starts[i] + parent], tokens[node])
            ahead = i + depths[node]
            own = text[ahead] if ahead <= last else text[last] + ahead - last
            if accepted[node] and ahead <= last:
                keys[node] = mix(np.uint64(seed), ahead)
                places[at + 1 + node - starts[i]] = own
                continue
            keys[node] = key
            if kind == WALK:
                before = places[at] if of_root else places[at + 1 + parent]
                place = before + 1 + np.int64(unit(key) * width)
            elif kind == TOKEN:
                shared = mix(mix(np.uint64(seed) ^ np.uint64(1), i), tokens[node])
                place = _another(text[i], width, length, unit(shared))
            else:
                place = _another(own, width, length, unit(key))
            places[at + 1 + node - starts[i]] = place
    return places


@njit(cache=True)
def _another(own: int, width: int, length: int, share: float) -> int:
    """A place within `width` of `own`, another than it, inside the sequence."""
    low, high = max(0, own - width), min(length - 1, own + width)
    place = low + np.int64(share * (high - low))
    return int(place + 1 if place >= own else place)


# -- as a recording --------------------------------------------------------------------------------


def traced_recording(
    donor: Recording,
    trace: RoutingTrace,
    trace_digest: str,
    graft: Graft,
    config: dict[str, Any],
    shape: Shape,
    acceptance: float | None = None,
) -> Recording:
    """`config` is the recorder's, with the traced model in the place of the donor's.

    Raises SpecfitError for a trace whose whole part is too short.
    """
    source = donor if acceptance is None else with_acceptance(donor, acceptance, graft.seed)
    requests, questions = grafted(source, trace.complete(), graft)
    who = traced_identity(donor.identity, trace_digest, graft, acceptance)
    trees = "recorded trees" if acceptance is None else f"a process of {acceptance:g} a cycle"
    device = f"half-real: routes of {trace.name}, {graft.name} {graft.seed}; {trees}"
    notes = {"half_real": half_real(trace.name, graft, acceptance), "donor": donor.recording_id}
    return Recording(
        identity.digest(who),
        who,
        config,
        shape,
        donor.stop_ids,
        device,
        requests,
        questions,
        donor.provenance,
        notes,
    )


def traced_identity(
    donor: Any, trace_digest: str, graft: Graft, acceptance: float | None
) -> identity.Identity:
    """The donor's, under another target: its router is the trace as the grafting reads it."""
    routes = [trace_digest, graft.name, graft.seed]
    target = identity.digest([donor["target"], *routes])
    who = dict(donor) | {"target": target, "routes": routes}
    if acceptance is not None:
        who["drafter"] = identity.digest([donor["drafter"], "acceptance", acceptance, graft.seed])
        who["acceptance"] = acceptance
    return who


def half_real(trace: str, graft: Graft, acceptance: float | None) -> str:
    """What is real and what is not, in one sentence for every artifact."""
    trees = (
        "drafted trees, their probabilities and what is accepted are the recorded pair's"
        if acceptance is None
        else "drafted trees and what is accepted are drawn from a stated process tuned to "
        f"{acceptance:g} committed tokens a cycle of EAGLE-3"
    )
    leak = "acceptance shows in the routes" if graft.name in LEAKS else "no leak of acceptance"
    return (
        f"half-real: routes are real ({trace}); {trees}; which route a drafted node has is assumed "
        f"({graft.name}, seed {graft.seed}: {leak})"
    )
