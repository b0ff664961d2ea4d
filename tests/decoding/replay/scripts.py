"""Scripted requests recorded by walking, for replays that must be equal to the byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from specfit.base.interfaces import Selector
from specfit.base.types import Request
from specfit.decoding.cycle import Cycle
from specfit.decoding.decoder import Decoder
from specfit.decoding.replay.parts import RecordedDrafter, RecordedRoutes, RecordedTarget
from specfit.decoding.replay.playback import Playback
from specfit.experts.cache import ExpertCache
from specfit.hardware.clock import ModelledClock
from specfit.hardware.profile import Billing, Profile
from specfit.models.routes.atlas import AtlasRoutes
from specfit.models.routes.noisy import NoisyRoutes
from specfit.selection.cost import CostModel
from specfit.selection.selectors import NoDraft, SpecFit, TopProbability
from specfit.storage.recording.files import Recording, Shape
from specfit.storage.recording.requests import RecordedRequest
from tests.decoding.replay.walking import walk
from tests.fakes.scripted import (
    EXPERT_BYTES,
    EXPERTS,
    LAYERS,
    TOP_K,
    ScriptedDrafter,
    ScriptedTarget,
    chain,
)

DEPTH = 3
TEXT = tuple(range(100, 180))
GUESSES = {
    token: (token + 1, 200 + token) if token % 3 else (200 + token, token + 1)
    for token in TEXT
    if token % 7
}
PROFILE = Profile("test", link_gbps=2.0, fixed_ms=1.2, draft_level_ms=0.3, selection_ms=0.2)
BILLING = Billing("large", 6 * LAYERS, 4000, LAYERS, EXPERT_BYTES)
COST = CostModel(1e6 + 2e5 * np.arange(8), 3e4)
STOPS = frozenset({TEXT[-1]})


def requests(*starts: int, new_tokens: int = 30) -> list[Request]:
    return [
        Request(f"q{start}", np.array([50 + start, 60, TEXT[start]]), new_tokens, STOPS)
        for start in starts
    ]


def clock() -> ModelledClock:
    return ModelledClock(PROFILE, BILLING)


def record(asked: Sequence[Request], most: int | None = None) -> list[RecordedRequest]:
    """By walking a script; a prompt's routes are those of its tokens."""
    found = []
    for row, request in enumerate(asked):
        target = ScriptedTarget(chain(*TEXT), 4)
        prompt = target._rows(request.prompt_ids.tolist())
        drafter, routes = ScriptedDrafter(GUESSES, DEPTH), AtlasRoutes(target)
        one = walk(request, target, drafter, routes, clock(), lambda p=prompt: p, most)  # type: ignore[misc]
        found.append(replace(one, row=row))
    return found


def recording(asked: Sequence[Request], **changes: object) -> Recording:
    shape = Shape(LAYERS, EXPERTS, TOP_K, 1, 1, 400, 512, EXPERT_BYTES)
    identity = {"target": "t", "drafter": "d", "rows": [f"digest of {r.request_id}" for r in asked]}
    whole = Recording(
        "scripted",
        identity,
        {},
        shape,
        tuple(STOPS),
        "a workplace",
        record(asked),
        record(asked[:1], 5),
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def selectors() -> dict[str, Selector]:
    return {
        "ar_cache": NoDraft("ar_cache"),
        "eagle3_cache": TopProbability("eagle3_cache", 7),
        "chain of 2": TopProbability("eagle3_cache", 2),
        "specfit": SpecFit(COST, EXPERTS, 7),
        "specfit, full depth": SpecFit(COST, EXPERTS, 7, adaptive_depth=False),
        "specfit, free experts": SpecFit(CostModel(COST.intercepts_ns, 0.0), EXPERTS, 5),
    }


def live(selector: Selector, slots: int, accuracy: float | None, chunk: int | None) -> Decoder:
    target = ScriptedTarget(chain(*TEXT), slots, chunk=chunk)
    drafter = ScriptedDrafter(GUESSES, DEPTH) if selector.drafts else None
    routes = _noisy(AtlasRoutes(target), accuracy) if selector.reads_routes else None
    return Decoder(target, drafter, routes, selector, clock())


def replayed(
    recorded: Sequence[RecordedRequest],
    selector: Selector,
    slots: int,
    accuracy: float | None,
    chunk: int | None,
) -> Decoder:
    playback = Playback(recorded)
    cache = ExpertCache(LAYERS, EXPERTS, slots)
    target = RecordedTarget(playback, cache, EXPERT_BYTES, chunk)
    drafter = RecordedDrafter(playback, DEPTH) if selector.drafts else None
    routes = _noisy(RecordedRoutes(playback), accuracy) if selector.reads_routes else None
    return Decoder(target, drafter, routes, selector, clock())


def _noisy(source: AtlasRoutes | RecordedRoutes, accuracy: float | None):  # type: ignore[no-untyped-def]
    return source if accuracy is None else NoisyRoutes(source, EXPERTS, accuracy, seed=3)


def decode(decoder: Decoder, asked: Sequence[Request]) -> Iterator[Cycle]:
    for request in asked:
        yield from decoder.decode(request)
