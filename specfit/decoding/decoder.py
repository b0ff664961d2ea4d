"""The cycle of one request: draft, select, verify, commit, record.

    context   x_0 .. x_{n-1}      in the target's KV cache (n entries)
    root      x_n                 committed, not yet processed by the target
    pool      children of x_n     drafted level by level; the selection is verified with the root

After a commit of c tokens the KV cache has n + c entries and the last committed token is the root.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

from specfit.base.interfaces import (
    Clock,
    Drafter,
    Features,
    PrefetchHooks,
    RouteSource,
    Selector,
    Target,
    Verified,
)
from specfit.base.types import DraftTree, ForwardTrace, Request, Routes, Selection
from specfit.decoding.acceptance import (
    accepted_rows,
    count_mismatches,
    cut_at_stop,
    refuse_no_token,
)
from specfit.decoding.cycle import Committed, Cycle, DecodeState, Drafted, PhaseTimer, finish


class Decoder:
    """Drafter and routes are None for selectors that do not ask for them."""

    def __init__(
        self,
        target: Target,
        drafter: Drafter | None,
        routes: RouteSource | None,
        selector: Selector,
        clock: Clock,
        prefetch_hooks: PrefetchHooks | None = None,
    ) -> None:
        assert (drafter is not None) == selector.drafts, "a selector that drafts needs a drafter"
        wanted = selector.reads_routes or prefetch_hooks is not None
        assert (routes is not None) == wanted, (
            "routes are for a selector that reads them, or for prefetching"
        )
        self.target, self.drafter, self.routes = target, drafter, routes
        self.selector, self.clock = selector, clock
        self.prefetch_hooks = prefetch_hooks

    def decode(self, request: Request) -> Iterator[Cycle]:
        session = DecodeState(request)
        yield self.prefill(session)
        while session.stop_reason is None:
            yield self.cycle(session)

    def prefill(self, session: DecodeState) -> Cycle:
        """Cycle 0 commits the first token; the head's own prefill is billed to it."""
        prompt, timer = session.request.prompt_ids, PhaseTimer()
        self.target.begin()
        if self.routes is not None:
            self.routes.begin(session.request)
        self.clock.start()
        filled = self.target.prefill(prompt)
        refuse_no_token([filled.token], filled.fault)
        timer.wait = sum(self.clock.bill_forward(trace) for trace in filled.traces)
        timer.verify = self.clock.lap()
        if self.drafter is not None:
            self.drafter.begin()
            self.drafter.extend(prompt[1:], filled.features[:-1])
            timer.draft = self.clock.lap()
        committed = self._commit(session, [filled.token], filled.features[-1:])
        timer.commit = self.clock.lap()
        self._tell_routes(filled.routes, timer)
        return self._finish(session, timer, Drafted.nothing(), committed, filled.traces, None)

    def cycle(self, session: DecodeState) -> Cycle:
        timer = PhaseTimer()
        self.clock.start()
        drafted = self.draft_and_select(session, timer)
        verified = self.verify(session, drafted, timer)
        rows = accepted_rows(drafted.tree, drafted.selection, verified.tokens)
        said = verified.tokens[rows].tolist()
        refuse_no_token(said, verified.fault)
        committed = self._commit(session, said, verified.features[rows])
        kept = rows[: len(committed.tokens)]
        self.target.keep(kept)
        self.clock.bill_commit()
        timer.commit = self.clock.lap()
        self._tell_routes(verified.routes[kept], timer)
        mismatches = self._compare_routes(drafted, verified)
        return self._finish(session, timer, drafted, committed, [verified.trace], mismatches)

    # -- draft and select ------------------------------------------------------------------------

    def draft_and_select(self, session: DecodeState, timer: PhaseTimer) -> Drafted:
        """Level by level; the same search after each, until it takes no node of the newest."""
        if self.drafter is None:
            self._predict_root(session, timer)
            return Drafted.nothing()
        self.drafter.extend(np.asarray(session.fresh_tokens), session.fresh_features)
        wanted = self.selector.draft_levels()
        most = self.drafter.max_depth if wanted is None else min(wanted, self.drafter.max_depth)
        if most == 0:
            timer.draft += self.clock.lap()
            return Drafted.nothing()
        tree = DraftTree.empty()
        while True:
            tree = self._draft_level(tree, timer)
            deepest = tree.levels == most
            if deepest or self.selector.adaptive_depth:
                routes = self._read_routes(session, tree, timer)
                drafted = Drafted(tree, routes, self._select(tree, routes, timer))
                if deepest or not drafted.takes_newest_level:
                    break
        if self.selector.reads_routes:
            self.clock.bill_selection()
            timer.select += self.clock.lap()
        drafted.selection.check(tree, self.selector.k)
        if self.prefetch_hooks is not None and drafted.routes is not None:
            if self.selector.reads_routes:
                self.prefetch_hooks.on_idle("select")
            self.prefetch_hooks.on_prediction(tree, drafted.routes, drafted.selection)
        return drafted

    def _predict_root(self, session: DecodeState, timer: PhaseTimer) -> None:
        """Nothing is drafted: the root's experts are all there is to bring in early."""
        if self.routes is not None and self.prefetch_hooks is not None:
            tree = DraftTree.empty()
            routes = self._read(self.routes, session, tree, timer)
            self.prefetch_hooks.on_prediction(tree, routes, Selection(()))
            self.routes.end_cycle()

    def _draft_level(self, tree: DraftTree, timer: PhaseTimer) -> DraftTree:
        assert self.drafter is not None
        grown = self.drafter.grow(tree)
        self.clock.bill_draft_level()
        timer.draft += self.clock.lap()
        if self.prefetch_hooks is not None:
            self.prefetch_hooks.on_idle("level")
        return grown

    def _read_routes(
        self, session: DecodeState, tree: DraftTree, timer: PhaseTimer
    ) -> Routes | None:
        """On the clock a source is billed; an atlas is read while the clock stands still."""
        if self.routes is None:
            return None
        routes = self._read(self.routes, session, tree, timer)
        if self.prefetch_hooks is not None:
            self.prefetch_hooks.on_prediction(tree, routes)
        return routes

    def _read(
        self, source: RouteSource, session: DecodeState, tree: DraftTree, timer: PhaseTimer
    ) -> Routes:
        if source.on_clock:
            routes = source.read(session.root, tree, session.context_tokens)
            self.clock.bill_routes()
            timer.route += self.clock.lap()
            if self.prefetch_hooks is not None:
                self.prefetch_hooks.on_idle("route")
            return routes
        begin = time.perf_counter_ns()
        with self.clock.off():
            routes = source.read(session.root, tree, session.context_tokens)
        timer.atlas_elapsed += time.perf_counter_ns() - begin
        return routes

    def _select(self, tree: DraftTree, routes: Routes | None, timer: PhaseTimer) -> Selection:
        begin = time.perf_counter_ns()
        selection = self.selector.select(tree, routes)
        timer.select_elapsed += time.perf_counter_ns() - begin
        timer.select += self.clock.lap()
        return selection

    # -- verify and commit -------------------------------------------------------------------------

    def verify(self, session: DecodeState, drafted: Drafted, timer: PhaseTimer) -> Verified:
        verified = self.target.verify(session.root, drafted.tree, drafted.selection)
        timer.wait = self.clock.bill_forward(verified.trace)
        timer.verify = self.clock.lap()
        return verified

    def _commit(self, session: DecodeState, tokens: list[int], features: Features) -> Committed:
        """Append accepted drafts and bonus, cut after a stop token or at the cap."""
        request = session.request
        room = request.max_new_tokens - len(session.output_ids)
        kept, session.stop_reason = cut_at_stop(tokens, request.stop_ids, room)
        session.output_ids += kept
        session.fresh_tokens, session.fresh_features = tokens, features
        return Committed(tuple(kept), accepted=min(len(tokens) - 1, len(kept)))

    def _tell_routes(self, routed: np.ndarray, timer: PhaseTimer) -> None:
        """The kept rows' routes; a source on the clock is billed for what it makes of them."""
        if self.routes is not None:
            self.routes.observe(routed)
            if self.routes.on_clock:
                timer.route += self.clock.lap()

    def _compare_routes(self, drafted: Drafted, verified: Verified) -> int | None:
        if self.routes is None or drafted.routes is None:
            return None
        self.routes.end_cycle()
        return count_mismatches(drafted.routes, drafted.selection, verified.routes)

    def _finish(
        self,
        session: DecodeState,
        timer: PhaseTimer,
        drafted: Drafted,
        committed: Committed,
        traces: Sequence[ForwardTrace],
        mismatches: int | None,
    ) -> Cycle:
        kv_length = session.context_tokens - 1
        assert self.target.length == kv_length, "KV length = prompt + committed - 1"
        billed = sum(self.clock.billed_bytes(trace) for trace in traces)
        expert_bytes = self.target.expert_bytes
        prefetches = self.prefetch_hooks is not None
        counted = drafted, committed, traces, mismatches, expert_bytes, billed, prefetches
        ended = finish(session, timer, *counted)
        self.selector.observe(ended.record)
        return ended
