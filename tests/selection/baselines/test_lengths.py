"""`cascade` and `moe_speq`: lengths by hand, from cycles that were observed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from specfit.base.interfaces import Selector
from specfit.selection.baselines.cascade import SET_CYCLES, TEST_CYCLES, Cascade
from specfit.selection.baselines.moe_speq import LinkCosts, MoeSpeq
from specfit.selection.mean_by_size import BySize
from tests.selection.baselines.making import record

# -- cascade ---------------------------------------------------------------------------------------


def lengths(selector: Selector, cycles: int, time_ns: Callable[[int], int]) -> list[int]:
    """Of a request's cycles, if one of K nodes commits 1 + K // 2 tokens and takes time_ns(K)."""
    selector.observe(record(0))
    seen = []
    for cycle in range(1, 1 + cycles):
        length = selector.draft_levels()
        assert length is not None
        seen.append(length)
        selector.observe(record(cycle, committed=1 + length // 2, ns=time_ns(length), verified=9))
    return seen


def runs(seen: list[int]) -> list[tuple[int, int]]:
    """(length, cycles) of each stretch."""
    found: list[tuple[int, int]] = []
    for length in seen:
        if found and found[-1][0] == length:
            found[-1] = (length, found[-1][1] + 1)
        else:
            found.append((length, 1))
    return found


def test_a_length_that_pays_is_set_and_tested_again() -> None:
    """Tokens 1, 1, 2, 2 in 100, 90, 120, 130: utility 1, 1.1, 1.7, 1.5. Then K = 0 is known."""
    seen = lengths(Cascade(5), 60, lambda k: [100, 90, 120, 130, 140, 150][k])
    T, S = TEST_CYCLES, SET_CYCLES
    assert runs(seen) == [(0, T), (1, T), (2, T), (3, T), (2, S), (1, T), (2, T), (3, T), (2, S)]


def test_speculation_that_does_not_pay_is_switched_off_and_tried_again() -> None:
    seen = lengths(Cascade(5), 48, lambda k: 100 + 10 * k)
    T, S = TEST_CYCLES, SET_CYCLES
    assert runs(seen) == [(0, T), (1, T), (0, S), (1, T), (0, S), (1, T)]


def test_equal_utility_is_no_reason_to_speculate() -> None:
    assert set(lengths(Cascade(5), 20, lambda k: 100)) == {0, 1}


def test_the_climb_ends_at_k() -> None:
    seen = lengths(Cascade(2), 30, lambda k: 100 - 10 * k)
    T, S = TEST_CYCLES, SET_CYCLES
    assert runs(seen)[:3] == [(0, T), (1, T), (2, T + S)]


def test_a_request_starts_anew() -> None:
    selector = Cascade(5)
    first = lengths(selector, 23, lambda k: [100, 90, 120, 130, 140, 150][k])
    assert lengths(selector, 23, lambda k: [100, 90, 120, 130, 140, 150][k]) == first


# -- moe_speq --------------------------------------------------------------------------------------

SIZES = BySize(np.ones(4), np.array([8.0, 12.0, 15.0, 17.0]))
LINK = LinkCosts(fixed_ns=60.0, draft_level_ns=3.0, node_ns=1.0, expert_ns=1.0, copy_ns=4.0)


def test_the_length_by_hand() -> None:
    """a = 1/2 and all is moved: T = 60 + 4 k + 5 D = 124, 143, 157; tokens 1.5, 1.75, 1.875:
    12.10, 12.24, 11.94 per microsecond, so two.
    """
    assert MoeSpeq(SIZES, LINK, 3).draft_levels() == 2


def test_a_warm_cache_and_a_good_head_lengthen_the_chain() -> None:
    """Nothing moved: T = 60 + 4 k + D = 76, 83, 89; 19.7, 21.1, 21.07: still two. With a = 3/4
    (3 accepted and 1 rejected in all) tokens are 1.75, 2.3125, 2.734: 23.0, 27.9, 30.7.
    """
    selector = MoeSpeq(SIZES, LINK, 3)
    selector.observe(record(1, committed=1, verified=0, demand=50, moved=0))
    assert selector.draft_levels() == 2
    selector.observe(record(2, committed=3, verified=2, demand=50, moved=0))
    assert selector.draft_levels() == 3


def test_rejections_shorten_it() -> None:
    """a = 1/4: tokens 1.25, 1.31, 1.33 in 124, 143, 157."""
    selector = MoeSpeq(SIZES, LINK, 3)
    for cycle in (1, 2):
        selector.observe(record(cycle, committed=1, verified=2, demand=1, moved=1))
    assert selector.draft_levels() == 1


@pytest.mark.parametrize(
    "unseen",
    [
        record(0, committed=1, demand=99, moved=0),
        # the path was cut: 1 of 2 kept, none rejected; what was moved counts
        record(3, committed=2, verified=2, demand=0, moved=0, stop="length"),
    ],
)
def test_prefill_and_a_cut_path_teach_nothing(unseen) -> None:  # type: ignore[no-untyped-def]
    taught, plain = MoeSpeq(SIZES, LINK, 3), MoeSpeq(SIZES, LINK, 3)
    taught.observe(unseen)
    assert vars(taught) == vars(plain)


def test_a_probes_own_parts_are_in_the_link_term() -> None:
    """Every cycle of a rule that always drafts pays what a probe times beside the fixed cost."""
    from specfit.decoding.factory import link_costs
    from specfit.hardware.profile import Billing, Profile

    billing = Billing("b", 12, 1000, 2, 10)  # six billed layers to one of its own
    probed = Profile(
        "p", 1.0, 70.0, commit_ms=0.5, tree_ms=1.0, extension_ms=2.0, copy_latency_us=3, miss_us=4
    )
    found = link_costs(probed, billing)
    assert found is not None
    assert found.fixed_ns == 73.5e6 and found.copy_ns == 6 * (1000 + 3000 + 4000)
    assert link_costs(Profile("q", None, 70.0), billing) is None
