"""A target and a drafter that look everything up in tables: no floats, nothing to approximate.

A text is Markov: the target's next token and the routes depend on the last token alone, the head's
two guesses likewise. A feature is the token it was made from, so that wrong pairing shows.

Two more sections walk such a pair into recorded requests, and script the texts, settings and
decoders of replays that must be equal to the byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from specfit.base.interfaces import Drafter, Prefilled, RouteSource, Selector, Target, Verified
from specfit.base.types import (
    PROBABILITY_ONE,
    ROOT,
    DraftTree,
    ForwardTrace,
    IntArray,
    Request,
    Routes,
    Selection,
)
from specfit.decoding.cycle import Cycle, DecodeState
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
from specfit.storage.recording.requests import RecordedRequest, pools_of

LAYERS, EXPERTS, TOP_K = 2, 16, 2
EXPERT_BYTES = 1000
NOWHERE = 99
"""What the target says after a token its table does not name."""
WRONG = (97, 98)
"""What the head drafts after a token its table does not name; the target never says them."""
SHARES = (5, 2)
"""Eighths of the parent's probability that the first and the second guess get."""

RouteTable = Mapping[int, Sequence[Sequence[int]]]  # token -> [L][k]


def chain(*tokens: int) -> dict[int, int]:
    """The target's table for one text."""
    assert len(set(tokens[:-1])) == len(tokens) - 1, "a token has one successor"
    return dict(pairwise(tokens))


def default_route(token: int) -> list[list[int]]:
    """Neighbours share one expert of layer 0; layer 1 tells even from odd."""
    return [[token % EXPERTS, (token + 1) % EXPERTS], [token % 2, 2 + token % 3]]


class ScriptedTarget:
    expert_bytes = EXPERT_BYTES

    def __init__(
        self,
        next_token: Mapping[int, int],
        slots: int = EXPERTS,
        routes: RouteTable | None = None,
        chunk: int | None = None,
    ) -> None:
        self._next, self._routes, self._chunk = next_token, routes or {}, chunk
        self.cache = ExpertCache(LAYERS, EXPERTS, slots)
        self.kv: list[int] = []
        self._scratch: list[int] = []
        self.observed: list[int] = []  # nodes asked for, call by call

    @property
    def length(self) -> int:
        return len(self.kv)

    def begin(self) -> None:
        self.truncate(0)

    def truncate(self, length: int) -> None:
        assert length <= len(self.kv)
        del self.kv[length:]
        self._scratch = []

    def residency(self) -> dict[str, np.ndarray]:
        return self.cache.state()

    def restore(self, residency: dict[str, np.ndarray]) -> None:
        self.cache.load_state(residency)

    def prefill(self, prompt_ids: IntArray) -> Prefilled:
        tokens = [int(token) for token in prompt_ids]
        step = self._chunk or len(tokens)
        traces = []
        for start in range(0, len(tokens), step):
            chunk = tokens[start : start + step]
            traces.append(self._forward(chunk, len(chunk), is_prefill=True))
            self.kv += chunk
        routes = self._rows(tokens)
        return Prefilled(self._after(tokens[-1]), np.array(tokens), routes, traces)

    def verify(self, root_token: int, tree: DraftTree, selection: Selection) -> Verified:
        tokens = [root_token, *tree.tokens[list(selection.nodes)].tolist()]
        trace = self._forward(tokens, len(selection.nodes), is_prefill=False)
        self._scratch = tokens
        after = np.array([self._after(token) for token in tokens])
        return Verified(after, np.array(tokens), self._rows(tokens), trace)

    def keep(self, rows: Sequence[int]) -> None:
        assert list(rows) == sorted(set(rows)), "ascending rows"
        self.kv += [self._scratch[row] for row in rows]
        self._scratch = []

    def observe(self, root_token: int, tree: DraftTree, seen: int) -> Routes:
        self.observed.append(len(tree) - seen)
        rows = self._rows([root_token, *tree.tokens.tolist()])
        return Routes(rows[0], rows[1 + seen :])

    def _after(self, token: int) -> int:
        return self._next.get(token, NOWHERE)

    def _rows(self, tokens: Sequence[int]) -> np.ndarray:
        """[T, L, k]"""
        rows = [self._routes.get(token) or default_route(token) for token in tokens]
        return np.array(rows, dtype=np.int64)

    def _forward(self, tokens: Sequence[int], billed: int, is_prefill: bool) -> ForwardTrace:
        return self.cache.replay(self._rows(tokens).swapaxes(0, 1), billed, is_prefill)


class ScriptedDrafter:
    """Two guesses after every one of the two likeliest nodes of the newest level."""

    def __init__(self, guesses: Mapping[int, tuple[int, int]], max_depth: int = 3) -> None:
        self._guesses, self.max_depth = guesses, max_depth
        self.begin()

    def begin(self) -> None:
        self.rows: list[tuple[int, int]] = []  # (x_{t+1}, feature of x_t)

    @property
    def length(self) -> int:
        return len(self.rows)

    def truncate(self, length: int) -> None:
        assert length <= len(self.rows)
        del self.rows[length:]

    def extend(self, tokens: IntArray, features: Any) -> None:
        self.rows += zip(np.asarray(tokens).tolist(), features.tolist(), strict=True)

    def grow(self, tree: DraftTree) -> DraftTree:
        tokens: list[int] = []
        parents: list[int] = []
        probs: list[int] = []
        for parent in self._beam(tree):
            at, above = self.rows[-1][0], PROBABILITY_ONE
            if parent != ROOT:
                at, above = int(tree.tokens[parent]), int(tree.path_probs[parent])
            tokens += self._guesses.get(at, WRONG)
            parents += [parent, parent]
            probs += [above * share // 8 for share in SHARES]
        return tree.grown(np.array(tokens), np.array(parents), np.array(probs))

    def _beam(self, tree: DraftTree) -> list[int]:
        if len(tree) == 0:
            return [ROOT]
        newest = np.flatnonzero(tree.depths == tree.levels)
        best = np.argsort(-tree.path_probs[newest], kind="stable")[:2]
        return sorted(newest[best].tolist())


# -- recording by walking --------------------------------------------------------------------------


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


# -- texts, and live and replayed decoders of them -------------------------------------------------

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
