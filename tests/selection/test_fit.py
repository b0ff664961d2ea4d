from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from specfit.base.types import SpecfitError
from specfit.selection.cost import CostModel
from specfit.selection.fit import doubts, fit, fit_affine, leave_one_out
from specfit.selection.min_cut import affine

K = 7
TRUE = CostModel(np.array([75, 90, 92, 91, 95, 99, 98, 104]) * 1e6, 377_600.0)


def probes(seed: int = 0, noise: float = 0.0) -> tuple[np.ndarray, ...]:
    """144 probes (app. B): nine states, sizes 0 to 7, two tree families."""
    rng = np.random.default_rng(seed)
    grid = list(product(range(9), range(K + 1), range(2)))
    state, size, _family = np.array(grid).T
    demand = 384 + 150 * size + rng.integers(-60, 60, len(grid)) * (size > 0)
    time = np.array([TRUE.predict_ns(s, d) for s, d in zip(size, demand, strict=True)])
    return state, size, demand, time * (1 + noise * rng.standard_normal(len(grid)))


def test_fit_recovers_the_coefficients() -> None:
    _state, size, demand, time = probes()
    model = fit(size, demand, time, K)
    assert model.intercepts_ns == pytest.approx(TRUE.intercepts_ns, rel=1e-9)
    assert model.expert_ns == pytest.approx(TRUE.expert_ns, rel=1e-9)


def test_fit_is_non_negative_and_close_under_noise() -> None:
    _state, size, demand, time = probes(noise=0.02)
    model = fit(size, demand, time, K)
    assert model.expert_ns == pytest.approx(TRUE.expert_ns, rel=0.15)
    falling = fit([0, 0, 1, 1], [10, 20, 10, 30], [100.0, 90.0, 80.0, 60.0], 1)
    assert falling.expert_ns == 0 and falling.intercepts_ns.tolist() == pytest.approx([95, 70])


def test_fit_does_not_depend_on_the_unit_of_time() -> None:
    _state, size, demand, time = probes(noise=0.05)
    small, large = fit(size, demand, time * 1e-6, K), fit(size, demand, time, K)
    assert small.intercepts_ns * 1e6 == pytest.approx(large.intercepts_ns, rel=1e-9)


def test_leave_one_out_never_sees_the_held_state() -> None:
    state, size, demand, time = probes()
    assert leave_one_out(state, size, demand, time, K).relative.max() < 1e-9
    shifted = np.where(state == 4, time * 1.5, time)
    errors = leave_one_out([f"q{s}" for s in state], size, demand, shifted, K)
    held = state == 4
    assert errors.relative[held] == pytest.approx(1 / 3)
    assert errors.absolute_ns[held] == pytest.approx(time[held] / 2)
    others = fit(size[state != 0], demand[state != 0], shifted[state != 0], K)
    first = int(np.flatnonzero(state == 0)[0])
    assert errors.predicted_ns[first] == others.predict_ns(int(size[first]), int(demand[first]))


def spoiled(what: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    _state, size, demand, time = probes()
    if what == "no probe of 3 nodes":
        size = np.where(size == 3, 2, size)
    elif what == "0 to 7 nodes":
        size[5] = 8
    elif what == "times must be positive":
        time[9] = 0
    elif what == "demands must be positive":
        demand[9] = 0
    elif what == "one time per probe":
        time = time[:-1]
    else:
        demand = 384 + 100 * size
    return size, demand, time


@pytest.mark.parametrize(
    "sentence",
    [
        "no probe of 3 nodes",
        "0 to 7 nodes",
        "times must be positive",
        "demands must be positive",
        "one time per probe",
        "all demand equally many",
    ],
)
def test_what_is_wrong_with_the_probes_is_said(sentence: str) -> None:
    with pytest.raises(SpecfitError, match=sentence):
        fit(*spoiled(sentence), K)


def test_one_state_cannot_be_left_out() -> None:
    _state, size, demand, time = probes()
    with pytest.raises(SpecfitError, match="two states"):
        leave_one_out(np.zeros(len(size)), size, demand, time, K)


LINE = CostModel(80e6 + 1.5e6 * np.arange(K + 1), 377_600.0)


def straight(noise: float = 0.0) -> tuple[np.ndarray, ...]:
    state, size, demand, _ = probes()
    time = np.array([LINE.predict_ns(s, d) for s, d in zip(size, demand, strict=True)])
    return state, size, demand, time * (1 + noise * np.random.default_rng(1).standard_normal(144))


def test_a_line_is_recovered_and_priced_beyond_the_largest_probe() -> None:
    _state, size, demand, time = straight()
    model = fit_affine(size, demand, time, 18)
    assert model.k == 18 and model.expert_ns == pytest.approx(LINE.expert_ns, rel=1e-9)
    assert model.intercepts_ns == pytest.approx(80e6 + 1.5e6 * np.arange(19), rel=1e-9)


def test_the_line_is_least_squares_non_negative_and_what_the_closure_takes() -> None:
    """No neighbour with a slope of at least 0 does better; where b_k fall, the slope is 0."""
    for _state, size, demand, time in (probes(noise=0.02), straight(noise=0.02)):
        model = fit_affine(size, demand, time, 18)
        assert affine(model).node >= 0

        def error(cost: CostModel, size=size, demand=demand, time=time) -> float:
            told = [cost.predict_ns(s, d) for s, d in zip(size, demand, strict=True)]
            return float(np.square(np.array(told) - time).sum())

        least = error(model)
        assert least >= error(fit(size, demand, time, K))
        for base, node, expert in product((-1, 0, 1), repeat=3):
            moved = model.intercepts_ns * (1 + 0.001 * base) + 1e4 * node * np.arange(19)
            other = CostModel(moved, model.expert_ns * (1 + 0.001 * expert))
            assert moved[1] < moved[0] or least <= error(other)
    falling = fit_affine([0, 0, 1, 1, 2, 2], [10, 20, 10, 30, 10, 40], [9.0, 9, 7, 7, 5, 5], 3)
    assert affine(falling).node == 0


def test_a_line_that_the_probes_do_not_settle_is_refused() -> None:
    size = np.repeat(np.arange(K + 1), 2)
    with pytest.raises(SpecfitError, match="from that of a node"):
        fit_affine(size, 384 + 100 * size, 1e8 + size, 18)


def test_the_line_s_error_is_held_out_likewise() -> None:
    state, size, demand, time = straight()
    assert leave_one_out(state, size, demand, time, K, fit_affine).relative.max() < 1e-9


def test_a_fit_of_nodes_and_misses_gives_no_doubt() -> None:
    """A quarter of the demand is missed, at 400 us each: 100 us an expert, give or take two."""
    demands, missing = [100, 200], [25, 50]
    for beta in (60_000.0, 100_000.0, 190_000.0):
        assert doubts(CostModel(np.array([70e6, 90e6]), beta), demands, missing, 400_000) == []


def test_a_fit_that_falls_or_whose_beta_is_no_miss_is_doubted() -> None:
    rising, falling = (CostModel(np.array(b) * 1e6, 100_000.0) for b in ([70, 90], [41, 0]))
    (falls,) = doubts(falling)
    assert falls.startswith("b_k falls from 41.0 ms at no node to 0.0 ms at 1")
    for beta in (0.0, 210_000.0):
        (told,) = doubts(CostModel(rising.intercepts_ns, beta), [100], [25], 400_000)
        assert "25 % of their experts" in told and "(100 us an expert)" in told
    assert doubts(CostModel(rising.intercepts_ns, 0.0), [100], [None], 400_000) == [], "old files"
