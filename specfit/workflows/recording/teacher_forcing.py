"""Greedy ids, then two layer-major passes over a batch of texts: what a recording is made of.

What the passes say themselves must agree with the greedy ids; where it does not, it is counted and
the margin is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from specfit.base.types import DraftTree, ForwardTrace, Request, Routes
from specfit.decoding.decoder import Decoder
from specfit.decoding.live import Runtime
from specfit.decoding.resolve import LiveRunSpec
from specfit.selection.selectors import NoDraft
from specfit.storage.recording.requests import pools_of
from specfit.storage.recording.stats import Tally
from specfit.workflows.recording.drafter_teacher import TeacherDrafter
from specfit.workflows.recording.target_teacher import Streamed, TeacherTarget, TextPass


@dataclass(frozen=True)
class Greedy:
    """One request and what the target answers to it."""

    request: Request
    output_ids: list[int]
    stop_reason: str | None


@dataclass
class Recorder:
    """Records requests of one run in batches."""

    spec: LiveRunSpec
    runtime: Runtime
    features: bool
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        spec, runtime = self.spec, self.runtime
        assert runtime.head is not None, "a recorder drafts"
        target = runtime.target
        aux = runtime.head.config.aux_layer_ids
        self._target = TeacherTarget(
            runtime.loaded, runtime.engine, aux, target.cache_argument, spec.device
        )
        shape = spec.config.drafter
        self._drafter = TeacherDrafter(runtime.head, shape.max_depth, shape.top_k, spec.device)
        self._decoder = Decoder(target, None, None, NoDraft("ar_cache"), runtime.clock())

    def greedy(self, request: Request, known: Sequence[int] | None = None) -> Greedy:
        """By plain decoding, unless the ids are known."""
        if known is None:
            begin = time.perf_counter()
            cycles = list(self._decoder.decode(request))
            self.tally.decode_seconds += time.perf_counter() - begin
            ids = [token for cycle in cycles for token in cycle.tokens]
            return Greedy(request, ids, cycles[-1].record.stop_reason)
        ids = [int(token) for token in known]
        return Greedy(request, ids, "eos" if ids[-1] in request.stop_ids else "length")

    def record(
        self, batch: Sequence[Greedy], most: int | None = None
    ) -> list[tuple[np.ndarray, Any]]:
        """(prompt routes [P, L, k], pools) of each; pools of the first `most` positions."""
        counts = [len(one.output_ids) - 1 for one in batch]
        if most is not None:
            counts = [min(count, most) for count in counts]
        texts = [_text(one, count) for one, count in zip(batch, counts, strict=True)]
        passes = self._timed("text_seconds", lambda: self._target.text(texts))
        self._compare(batch, passes)
        drafted = self._timed("draft_seconds", lambda: self._draft(texts, passes, counts))
        atlases = self._timed("pools_seconds", lambda: self._routes(passes, drafted))
        self._count(drafted)
        found = []
        for one, done, (trees, features), routes in zip(
            batch, passes, drafted, atlases, strict=True
        ):
            pools = None
            if trees:
                halves = [f.half().cpu().numpy() for f in features] if self.features else None
                pools = pools_of(trees, routes, one.output_ids, halves)
            prompt = done.routes[: len(one.request.prompt_ids)]
            found.append((_one_byte(prompt), pools))
        return found

    def _draft(
        self, texts: Sequence[np.ndarray], passes: Sequence[TextPass], counts: Sequence[int]
    ) -> list[tuple[list[DraftTree], list[Any]]]:
        items = zip(texts, passes, counts, strict=True)
        return [
            self._drafter.pools(text, done.features, count) if count else ([], [])
            for text, done, count in items
        ]

    def _routes(
        self, passes: Sequence[TextPass], drafted: Sequence[tuple[list[DraftTree], Any]]
    ) -> list[list[Routes]]:
        """Requests that end with their first token have no pool and stay out of the pass."""
        drawn = [i for i, (trees, _) in enumerate(drafted) if trees]
        found: list[list[Routes]] = [[] for _ in passes]
        if drawn:
            done = self._target.pools([passes[i] for i in drawn], [drafted[i][0] for i in drawn])
            for i, routes in zip(drawn, done, strict=True):
                found[i] = routes
        return found

    def _timed(self, column: str, work: Callable[[], Any]) -> Any:
        begin = time.perf_counter()
        result = work()
        setattr(self.tally, column, getattr(self.tally, column) + time.perf_counter() - begin)
        return result

    def _count(self, drafted: Sequence[tuple[list[DraftTree], Any]]) -> None:
        """What the two passes and the drafting streamed, and what the modelled clock bills."""
        tally, levels = self.tally, self._drafter.calls
        tally.nodes += sum(len(tree) for trees, _ in drafted for tree in trees)
        for one in self._target.streamed:
            tally.passes += 1
            tally.rows += one.rows
        if self.spec.clock == "modelled":
            clock, blocks = self.runtime.clock(), self.spec.profile.copies_in_flight + 1
            clock.start()
            for _ in range(levels):
                clock.bill_draft_level()
            for trace in (_billed(one, blocks) for one in self._target.streamed):
                clock.bill_forward(trace)
                tally.pass_bytes += clock.billed_bytes(trace)
            tally.pass_ns += clock.lap()
        self._target.streamed.clear()
        self._drafter.calls = 0

    def _compare(self, batch: Sequence[Greedy], passes: Sequence[TextPass]) -> None:
        for one, done in zip(batch, passes, strict=True):
            first = len(one.request.prompt_ids) - 1
            said, margins = done.said[first:], done.margins[first:]
            wrong = said != np.asarray(one.output_ids[: len(said)])
            self.tally.tokens += len(said)
            self.tally.token_mismatches += int(wrong.sum())
            worst = float(margins[wrong].max(initial=0.0))
            self.tally.largest_mismatch_margin = max(self.tally.largest_mismatch_margin, worst)


def _billed(one: Streamed, blocks: int) -> ForwardTrace:
    """A pass as a prefill chunk of so many rows, every expert streamed through the staging."""
    none = np.zeros(len(one.experts), dtype=np.int64)
    wait_for = np.maximum(np.arange(one.experts.max(initial=0)) - blocks, -1)
    everywhere = np.tile(wait_for, (len(none), 1))
    return ForwardTrace(one.rows, True, none, one.experts, none, everywhere)


def _text(one: Greedy, positions: int) -> np.ndarray:
    """Prompt and the output up to the last root."""
    return np.concatenate([one.request.prompt_ids, one.output_ids[:positions]]).astype(np.int64)


def _one_byte(routes: np.ndarray) -> np.ndarray:
    assert routes.size == 0 or int(routes.max()) < 256
    return routes.astype(np.uint8)
