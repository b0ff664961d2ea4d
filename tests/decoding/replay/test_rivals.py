"""Every rival rule in the decoder: the target's own ids, and a replay leaves the same records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specfit.base.interfaces import Selector
from specfit.base.types import DraftTree, Routes, Selection
from specfit.selection.selectors import NoDraft
from tests.fakes import table_model
from tests.fakes.table_model import EXPERTS
from tests.selection.baselines.making import RIVALS, make

ASKED = table_model.requests(0, 5, 11, 60, 70)
POOL = 18  # selector.k of the whole pool; these pools have 2 + 4 + 4


@pytest.fixture(scope="module")
def recorded():  # type: ignore[no-untyped-def]
    return table_model.record(ASKED)


def plain_text() -> list[int]:
    decoder = table_model.live(NoDraft("ar_cache"), 5, None, None)
    return [token for cycle in table_model.decode(decoder, ASKED) for token in cycle.tokens]


@pytest.mark.parametrize("slots", [0, 5])
@pytest.mark.parametrize("name", RIVALS)
def test_ids_are_the_targets_and_a_replay_is_the_run(recorded, name: str, slots: int) -> None:  # type: ignore[no-untyped-def]
    live = list(table_model.decode(table_model.live(make(name, EXPERTS), slots, None, None), ASKED))
    other = table_model.replayed(recorded, make(name, EXPERTS), slots, None, None)
    assert [token for cycle in live for token in cycle.tokens] == plain_text()
    assert [c.record for c in live] == [c.record for c in table_model.decode(other, ASKED)]
    assert sum(c.record.accepted_tokens for c in live) > 0, "or nothing is shown"


@pytest.mark.parametrize("name", ["cascade", "moe_speq"])
def test_a_resumed_run_goes_on_with_what_it_had_seen(name: str) -> None:
    """As `execution` does it: a new selector observes the finished requests' cycles."""
    through = table_model.live(make(name, EXPERTS), 5, None, None)
    before = [cycle.record for cycle in table_model.decode(through, ASKED[:2])]
    residency = through.target.residency()
    after = [cycle.record for cycle in table_model.decode(through, ASKED[2:])]
    resumed = table_model.live(make(name, EXPERTS), 5, None, None)
    resumed.target.restore(residency)
    for record in before:
        resumed.selector.observe(record)
    assert [cycle.record for cycle in table_model.decode(resumed, ASKED[2:])] == after


# -- a length that is known before drafting --------------------------------------------------------


class Levels(Selector):
    """Asks for these numbers of levels, cycle after cycle, and verifies all that was drafted."""

    name, k, drafts, reads_routes = "levels", POOL, True, False

    def __init__(self, *wanted: int | None, adaptive_depth: bool = False) -> None:
        self.adaptive_depth = adaptive_depth
        self._wanted, self._cycle = wanted, -1
        self.asked = 0

    def draft_levels(self) -> int | None:
        self._cycle += 1
        return self._wanted[self._cycle % len(self._wanted)]

    def select(self, tree: DraftTree, routes: Routes | None) -> Selection:
        self.asked += 1
        return Selection(tuple(range(len(tree))))


def test_no_more_levels_are_drafted_than_are_wanted(recorded) -> None:  # type: ignore[no-untyped-def]
    wanted = (2, 0, 1, None, 7, 0, 3)
    level_ns = round(table_model.PROFILE.draft_level_ms * 1e6)
    selector = Levels(*wanted)
    cycles = list(table_model.decode(table_model.live(selector, 5, None, None), ASKED))
    assert [token for cycle in cycles for token in cycle.tokens] == plain_text()
    records = [cycle.record for cycle in cycles if cycle.record.cycle > 0]
    drafted = [min(table_model.DEPTH if w is None else w, table_model.DEPTH) for w in wanted]
    expected = [drafted[i % len(wanted)] for i in range(len(records))]
    assert [record.drafted_levels for record in records] == expected
    assert [record.draft_ns for record in records] == [level_ns * n for n in expected]
    assert {r.pool_nodes for r in records if r.drafted_levels == 0} == {0}
    assert selector.asked == sum(n > 0 for n in expected), "once a cycle, and not without a pool"
    other = table_model.replayed(recorded, Levels(*wanted), 5, None, None)
    assert [cycle.record for cycle in table_model.decode(other, ASKED)] == [
        c.record for c in cycles
    ]


def test_an_adaptive_selector_is_asked_up_to_its_limit() -> None:
    selector = Levels(2, adaptive_depth=True)
    asked = [replace(ASKED[0], max_new_tokens=9)]
    records = [
        c.record for c in table_model.decode(table_model.live(selector, 5, None, None), asked)
    ]
    assert {record.drafted_levels for record in records[1:]} == {2}
    assert selector.asked == 2 * (len(records) - 1)
