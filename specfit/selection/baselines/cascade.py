"""A chain's length by its measured utility: test, then set."""

from __future__ import annotations

from dataclasses import dataclass

from specfit.base.interfaces import Selector
from specfit.base.types import CycleRecord, DraftTree, Routes, Selection
from specfit.selection.baselines.fixed import best_chain

TEST_CYCLES = 4
SET_CYCLES = 16


@dataclass
class Tally:
    """What cycles of one length gave and took."""

    tokens: int = 0
    time_ns: int = 0

    def beats(self, other: Tally) -> bool:
        """More tokens per time, exactly; both have run."""
        return self.tokens * other.time_ns > other.tokens * self.time_ns


class Cascade(Selector):
    """`cascade`: a chain of K nodes; K of each request by trial, 0 where speculation does not pay.

    Cascade (arXiv 2506.20675) measures the *utility* of a length, the factor it gains in tokens
    over the factor it costs in time, in short test phases between longer set phases. It switches
    speculation off for a request whose utility is below 1, else it sets the best length tested. Its
    setting has every expert on the device; no code of the authors was public.

    *Ours*: 4 cycles per tested length, 16 per set phase, no back-off. A request starts by testing
    K = 0, and each of its cycles at K = 0 counts for that baseline. A test climbs from K = 1 to the
    first length that does not beat the one before (K = 0 has utility 1), or to `selector.k`, and
    the best is set. Utility is of whole cycles on the run's clock, misses included. The chain is
    the pool's best of K levels, and at K = 0 nothing is drafted.

    Nothing is carried from one request to the next, so a resumed run and a replay repeat it.
    """

    drafts = True
    reads_routes = False
    adaptive_depth = False

    def __init__(self, k: int = 5, name: str = "cascade") -> None:
        self.name = name
        self.k = k
        self._begin()

    def _begin(self) -> None:
        self._tallies = [Tally()]  # of lengths 0, 1, ..; all but the first of this test alone
        self._run(0, TEST_CYCLES, testing=True)

    def _run(self, length: int, cycles: int, testing: bool) -> None:
        self._length, self._cycles_left, self._testing = length, cycles, testing

    def draft_levels(self) -> int:
        return self._length

    def select(self, tree: DraftTree, routes: Routes | None) -> Selection:
        return Selection(best_chain(tree, self._length))

    def observe(self, record: CycleRecord) -> None:
        if record.cycle == 0:
            self._begin()
            return
        if self._testing or self._length == 0:
            tally = self._tallies[self._length]
            tally.tokens += record.committed_tokens
            tally.time_ns += record.cycle_ns
        self._cycles_left -= 1
        if self._cycles_left == 0:
            self._go_on()

    def _go_on(self) -> None:
        if self._testing and self._length > 0:
            tested = self._length
            climbs = self._tallies[tested].beats(self._tallies[tested - 1])
        else:  # K = 0 was tested, or a set phase ended: a test begins
            del self._tallies[1:]
            tested, climbs = 0, True
        if climbs and tested < self.k:
            self._tallies.append(Tally())
            self._run(tested + 1, TEST_CYCLES, testing=True)
        else:  # every length before the last beat the one before it
            self._run(tested if climbs else tested - 1, SET_CYCLES, testing=False)
