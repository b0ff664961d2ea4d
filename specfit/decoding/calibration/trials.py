"""Calibration probes (app. B): whole full-depth cycles with a forced tree, verified and undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from specfit.base.interfaces import Clock, Drafter, PrefetchHooks, RouteSource, Selector, Target
from specfit.base.types import (
    DraftTree,
    IntArray,
    Request,
    RequestError,
    Routes,
    Selection,
    SpecfitError,
)
from specfit.decoding.cycle import DecodeState, PhaseTimer
from specfit.decoding.decoder import Decoder
from specfit.selection.bitmaps import bitmaps
from specfit.selection.cost import CostModel
from specfit.selection.forced_trees import minimum_union, most_probable
from specfit.selection.selectors import NoDraft, SpecFit

POSITIONS = (8, 24, 48)
"""Committed tokens at which a question is probed; with three questions, the paper's nine states."""

QUESTIONS = 3
STATES = QUESTIONS * len(POSITIONS)


@dataclass(frozen=True)
class TreeTrial:
    """One probe cycle: what was verified and what the cycle took."""

    request_id: str
    position: int  # committed tokens
    family: str  # probability or union
    size: int
    demand: int
    cycle_ns: int
    missing: int | None = None  # demanded and without a slot before the cycle; None in old files

    @property
    def state(self) -> str:
        return f"{self.request_id}@{self.position}"


@dataclass(frozen=True, eq=False)
class Start:
    """A question that is probed, and the residency it begins with."""

    request: Request
    residency: dict[str, np.ndarray]


class ForcedTree(Selector):
    """Searches like SpecFit after every level, so that its cost is paid, then verifies `nodes`."""

    name = "probe"
    drafts = reads_routes = adaptive_depth = True

    def __init__(self, searching: SpecFit, max_depth: int) -> None:
        self._searching, self._max_depth = searching, max_depth
        self.k = max(searching.k, max_depth)
        self.nodes: tuple[int, ...] = ()

    def select(self, tree: DraftTree, routes: Routes | None) -> Selection:
        self._searching.select(tree, routes)
        if tree.levels < self._max_depth:
            return Selection(tree.path(len(tree) - 1))  # holds a newest node: drafting goes on
        return Selection(self.nodes)


class Walking(NoDraft):
    """Plain decoding that the route source observes, as a run's source observes every token."""

    reads_routes = True


class Heard(RouteSource):
    """A run's source, which may remember the text: it observes the question and no forced tree."""

    def __init__(self, source: RouteSource) -> None:
        self._source, self.probing = source, False

    @property
    def on_clock(self) -> bool:
        return self._source.on_clock

    def begin(self, request: Request) -> None:
        self._source.begin(request)

    def read(self, root_token: int, tree: DraftTree, context_tokens: int) -> Routes:
        return self._source.read(root_token, tree, context_tokens)

    def observe(self, routed: IntArray) -> None:
        if not self.probing:
            self._source.observe(routed)

    def end_cycle(self) -> None:
        self._source.end_cycle()


class TreeTrials:
    """Walks questions by plain cached decoding and probes at fixed positions.

    Every probe starts from the state's own KV, drafter cache and residency, put back untimed.
    """

    def __init__(
        self,
        target: Target,
        drafter: Drafter,
        routes: RouteSource,
        clock: Clock,
        num_experts: int,
        k: int,
        prefetch_hooks: PrefetchHooks | None = None,
    ) -> None:
        self._target, self._drafter, self._k = target, drafter, k
        self._seen: Callable[[], None] | None = None
        self._num_experts = num_experts
        searching = SpecFit(CostModel(np.ones(k + 1), 1.0), num_experts, k)
        self._forced = ForcedTree(searching, drafter.max_depth)
        self._routes = Heard(routes)
        self._prober = Decoder(target, drafter, self._routes, self._forced, clock, prefetch_hooks)
        self._walker = Decoder(target, None, self._routes, Walking("ar_cache"), clock)

    def run(
        self, requests: Iterator[Request], seen: Callable[[], None] | None = None
    ) -> list[TreeTrial]:
        """Probes of the first QUESTIONS requests that are long enough; `seen` after each state.

        Probes leave nothing behind, so those of an answer that turns out too short are wasted:
        after the first such answer, a question is walked before it is probed.
        """
        self._seen = seen
        found: list[list[TreeTrial]] = []
        is_short = False
        for request in requests:
            before = self._target.residency()
            if is_short and not _decoded(request, self._walk):
                continue
            if is_short:
                self._target.restore(before)
            result = _decoded(request, self._question)
            is_short = is_short or not result
            found += [result] if result else []
            if len(found) == QUESTIONS:
                break
        return _enough(found)

    def starts(self, requests: Iterator[Request]) -> list[Start]:
        """The questions that `run` would probe, by walking alone: what `run_from` takes."""
        found: list[Start] = []
        for request in requests:
            before = self._target.residency()
            if _decoded(request, self._walk):
                found.append(Start(request, before))
            if len(found) == QUESTIONS:
                break
        return found

    def run_from(
        self, starts: Sequence[Start], seen: Callable[[], None] | None = None
    ) -> list[TreeTrial]:
        """The probes of `run`, without the questions between those that are probed."""
        self._seen = seen
        found = []
        for start in starts:
            self._target.restore(start.residency)
            found.append(_decoded(start.request, self._question))
        return _enough(found)

    def _walk(self, request: Request) -> bool:
        """Whether a question's answer reaches the last position; it is decoded up to there."""
        session = DecodeState(request)
        self._walker.prefill(session)
        while session.stop_reason is None:
            if len(session.output_ids) == POSITIONS[-1]:
                return True
            self._walker.cycle(session)
        return False

    def warm_up(self, requests: Iterator[Request]) -> None:
        """The first question that is probed: everything that probes use has been used then."""
        probed: list[None] = []
        self._seen = lambda: probed.append(None)
        for request in requests:
            with suppress(RequestError):  # `run` names the question
                self._question(request)
            if probed:
                return

    def _question(self, request: Request) -> list[TreeTrial]:
        """All positions of one question, or nothing where its answer ends before the last one."""
        session = DecodeState(request)
        self._prober.prefill(session)
        probes: list[TreeTrial] = []
        while session.stop_reason is None:
            if len(session.output_ids) in POSITIONS:
                probes += self._state(session)
                if self._seen is not None:
                    self._seen()
                if len(session.output_ids) == POSITIONS[-1]:
                    return probes
            self._drafter.extend(np.asarray(session.fresh_tokens), session.fresh_features)
            self._walker.cycle(session)
        return []

    def _state(self, session: DecodeState) -> list[TreeTrial]:
        saved = self._target.residency(), self._target.length, self._drafter.length
        self._routes.probing = True
        trees = self._trees(session)
        self._put_back(*saved)
        probes = []
        for family, nodes in trees:
            self._forced.nodes = nodes
            trial = replace(session, output_ids=list(session.output_ids))
            record = self._prober.cycle(trial).record
            self._put_back(*saved)
            assert record.verified_nodes == len(nodes), "the forced tree was verified"
            probes.append(
                TreeTrial(
                    session.request.request_id,
                    len(session.output_ids),
                    family,
                    len(nodes),
                    record.demand_experts,
                    record.cycle_ns,
                    record.demand_experts
                    - record.hit_experts
                    + (record.used_prefetched_experts or 0),
                )
            )
        self._routes.probing = False
        return probes

    def _trees(self, session: DecodeState) -> Sequence[tuple[str, tuple[int, ...]]]:
        """Both families at every size from 0 to k; size 0 is one tree, probed twice."""
        self._forced.nodes = ()  # nothing of the state before is legal here
        drafted = self._prober.draft_and_select(session, PhaseTimer())
        assert drafted.routes is not None
        self._routes.end_cycle()
        rows = bitmaps(drafted.routes, self._num_experts)
        trees: list[tuple[str, tuple[int, ...]]] = []
        for size in range(min(self._k, len(drafted.tree)) + 1):
            trees.append(("probability", most_probable(drafted.tree, size)))
            trees.append(("union", minimum_union(drafted.tree, rows, size)))
        return trees

    def _put_back(self, residency: dict[str, np.ndarray], kv: int, drafted: int) -> None:
        self._target.restore(residency)
        self._target.truncate(kv)
        self._drafter.truncate(drafted)


T = TypeVar("T")


def _decoded(request: Request, decode: Callable[[Request], T]) -> T:
    """Raises SpecfitError where the question is one that cannot be decoded."""
    try:
        return decode(request)
    except RequestError as error:
        raise SpecfitError(
            f"calibration question {request.request_id} cannot be decoded ({error})"
        ) from None


def _enough(found: Sequence[list[TreeTrial]]) -> list[TreeTrial]:
    if len(found) == QUESTIONS:
        return [probe for probes in found for probe in probes]
    raise SpecfitError(
        f"calibration needs {QUESTIONS} questions whose answers exceed {POSITIONS[-1]} tokens; "
        "set calibration.dataset_path to a file with more of them"
    )
