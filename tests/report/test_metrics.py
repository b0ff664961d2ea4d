from __future__ import annotations

import numpy as np
import pytest

from specfit.base.types import SpecfitError
from specfit.report import intervals
from specfit.report.intervals import DRAWS, Interval, interval_of, ratio_interval, speedup
from specfit.report.metrics import same_ids, summarise, totals
from tests.fakes.rows import part, rows_of


def test_prefill_is_in_no_decode_ratio() -> None:
    s = summarise(rows_of([part("a", (1, 2, 3))]))  # 5 tokens in two cycles of 4 ms
    assert s.decode_tokens == 5
    assert s.tokens_per_second == pytest.approx(5 / 0.008)
    assert s.tokens_per_second_with_prefill == pytest.approx(6 / 0.012)
    assert s.committed_per_cycle == 2.5
    assert s.verified_per_cycle == 1.5
    assert s.experts_per_token == 8 / 5
    assert s.experts_per_token_with_prefill == 12 / 6
    assert s.hit_rate == 0.6
    assert s.phase_ns_per_cycle["verify"] == 3e6 and s.phase_shares["draft"] == 0.25
    assert s.wait_ns_per_cycle == 2e6
    assert (s.transferred_bytes, s.billed_bytes) == (1200, 7200)
    assert s.timed_ns == 12_000_000 and s.elapsed_ns == 24_000_000 and s.atlas_ns == 12_000_000


def test_ratios_are_of_sums_not_means_of_ratios() -> None:
    """100 tokens in 10 cycles and 1 token in 1: 101 / 11, not the mean of 10 and 1."""
    s = summarise(rows_of([part("a", (1,) + (10,) * 10), part("b", (1, 1))]))
    assert s.committed_per_cycle == pytest.approx(101 / 11)


def test_failed_requests_are_counted_and_in_no_ratio() -> None:
    s = summarise(rows_of([part("a", (1, 3)), part("b", status="too long")]))
    assert (s.requests, s.failed, s.committed_per_cycle) == (1, 1, 3.0)


def test_nothing_to_divide_by_is_none_not_zero() -> None:
    s = summarise(rows_of([part("a", (1,))]))  # stopped at its first token
    assert s.tokens_per_second is None and s.hit_rate is None and s.committed_per_cycle is None
    assert s.phase_shares["verify"] is None
    assert s.tokens_per_second_with_prefill == pytest.approx(1 / 0.004)


def test_totals_keep_request_order_and_sum_each_request() -> None:
    t = totals(rows_of([part("z", (1, 2)), part("a", (1, 3, 4))]))
    assert t.decode["committed_tokens"].to_dict() == {"z": 2, "a": 7}
    assert t.decode["cycles"].tolist() == [1, 2] and t.prefill["cycles"].tolist() == [1, 1]


def test_speedup_is_a_ratio_of_like_sums_over_shared_requests() -> None:
    ours = rows_of([part("a", (1, 4, 4)), part("b", (1, 2)), part("c", status="late")], "a" * 12)
    ar = rows_of([part("a", (1, 1, 1)), part("b", (1, 1)), part("c")], "b" * 12)
    gain = speedup(ours, ar)
    assert gain.value == pytest.approx((10 / 12) / (3 / 12))
    assert (gain.n, gain.excluded) == (2, 1)


def test_pairing_by_request_makes_a_constant_speedup_certain() -> None:
    """Requests differ a hundredfold in speed, the ratio never: a paired interval has no width."""
    ns = [10**6 * 3**i for i in range(5)]
    slow = rows_of([part(str(i), (1, 1), verify_ns=2 * n, draft_ns=0) for i, n in enumerate(ns, 1)])
    fast = rows_of([part(str(i), (1, 2), verify_ns=2 * n, draft_ns=0) for i, n in enumerate(ns, 1)])
    gain = speedup(fast, slow)
    assert (gain.value, gain.low, gain.high) == pytest.approx((2.0, 2.0, 2.0))


def test_the_interval_is_seeded_and_needs_two_requests() -> None:
    columns = np.array([[3, 1], [4, 2], [5, 1], [9, 4]])
    first, second = (ratio_interval(columns[:, 0], columns[:, 1]) for _ in range(2))
    assert first == second and first.low is not None and first.high is not None
    assert first.value == 21 / 8 and first.low < 21 / 8 < first.high
    assert ratio_interval(columns[:1, 0], columns[:1, 1]) == Interval(3.0, None, None, 1)
    assert ratio_interval(np.array([1, 2]), np.array([0, 0])) == Interval(None, None, None, 2)


def test_multinomial_draws_are_a_bootstrap_over_requests() -> None:
    """Against drawing indices one by one: the same bounds within the noise of 10,000 draws."""
    rng = np.random.default_rng(1)
    columns = rng.integers(1, 100, size=(20, 2))
    found = ratio_interval(columns[:, 0], columns[:, 1])
    sums = columns[rng.integers(0, 20, size=(DRAWS, 20))].sum(axis=1)
    low, high = np.percentile(sums[:, 0] / sums[:, 1], (2.5, 97.5))
    assert found.low == pytest.approx(low, rel=0.02)
    assert found.high == pytest.approx(high, rel=0.02)


def test_the_interval_covers(monkeypatch: pytest.MonkeyPatch) -> None:
    """95 % intervals of a known ratio (2) cover it in 95 % of 300 data sets; the percentile
    bootstrap is a little narrow at n = 40, so 89-99 % (more than 4 sigma) is asked."""
    monkeypatch.setattr(intervals, "DRAWS", 1000)
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(300):
        cycles = rng.integers(20, 60, size=40).astype(float)
        tokens = 2 * cycles + rng.normal(0, 10, size=40)
        found = interval_of(lambda sums: sums[..., 0] / sums[..., 1], np.stack([tokens, cycles], 1))
        assert found.low is not None and found.high is not None
        covered += found.low <= 2 <= found.high
    assert 0.89 <= covered / 300 <= 0.99


def test_same_ids_names_the_first_request_and_token_that_differ() -> None:
    a = rows_of([part("p"), part("q", output_ids=[1, 2, 3]), part("r", output_ids=[5])])
    b = rows_of([part("p"), part("q", output_ids=[1, 7, 3]), part("r", output_ids=[6])])
    check = same_ids(a, b)
    assert (check.first_difference, check.position, check.equal) == ("q", 1, False)
    assert str(check) == "no: first at request q, token 1"
    assert same_ids(a, a).equal and str(same_ids(a, a)) == "yes, 3 requests"


def test_a_shorter_output_is_a_difference() -> None:
    a = rows_of([part("p", output_ids=[1, 2, 3])])
    b = rows_of([part("p", output_ids=[1, 2])])
    assert same_ids(a, b).position == 2


def test_same_ids_excludes_failed_requests_and_is_not_equal_over_none() -> None:
    a = rows_of([part("p", status="late"), part("q")])
    b = rows_of([part("p"), part("q")])
    assert (same_ids(a, b).compared, same_ids(a, b).excluded, same_ids(a, b).equal) == (1, 1, True)
    nothing = rows_of([part("p", status="late"), part("q", status="late")])
    assert not same_ids(nothing, b).equal


def test_runs_of_other_requests_are_refused() -> None:
    with pytest.raises(SpecfitError, match="different requests"):
        speedup(rows_of([part("p")]), rows_of([part("p"), part("q")]))
