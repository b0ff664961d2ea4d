"""Intervals over requests and over clusters: which is given, and how often they hold the truth."""

from __future__ import annotations

import numpy as np
import pytest

from specfit.report import intervals
from specfit.report.intervals import expanded_tails, paired_ratio, ratio_interval, student
from specfit.report.quantities import QUANTITIES
from tests.fakes.rows import part, rows_of

SAMPLES = 150
CLUSTERS, OF_EACH = 8, 5


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "DRAWS", 1000)


def test_the_wider_of_the_two_is_given() -> None:
    """Two clusters that differ and are each alike: over requests the spread is hidden."""
    tokens, cycles = np.array([10.0] * 6 + [30.0] * 6), np.ones(12) * 10
    alike = ratio_interval(tokens, cycles, ["a"] * 6 + ["b"] * 6)
    alone = ratio_interval(tokens, cycles)
    assert (alone.clusters, alike.clusters, alike.value, alike.n) == (0, 2, 2.0, 12)
    assert (alike.low, alike.high) == (1.0, 3.0), "whole clusters were drawn"
    assert alone.low is not None and alone.low > 1.0
    mixed = ratio_interval(tokens, cycles, list("abcabc") * 2)
    assert mixed.width >= alone.width and (mixed.clusters == 0) == (mixed == alone)


@pytest.mark.parametrize("clusters", [None, ["a"] * 4, ["a", "b", None, "b"]])
def test_without_known_clusters_it_is_over_requests(clusters: list[str | None] | None) -> None:
    counted = np.array([[3.0, 2.0], [4.0, 2.0], [5.0, 2.0], [9.0, 2.0]])
    assert paired_ratio(counted, counted[::-1], 1, clusters) == paired_ratio(
        counted, counted[::-1], 1
    )


def test_a_quantity_reads_the_clusters_of_its_rows() -> None:
    parts = [
        part(name, (1, 2 + 2 * late), scores={"score": 1.0, "cluster": "xy"[late]})
        for late, names in enumerate(("abcdef", "ghijkl"))
        for name in names
    ]
    found = QUANTITIES["committed"].of(rows_of(parts))
    assert (found.value, found.low, found.high, found.clusters) == (3.0, 2.0, 4.0, 2)
    assert QUANTITIES["committed"].of(rows_of(parts[:6])).clusters == 0, "one cluster is none"


def test_tails_are_students() -> None:
    """Quantiles of a printed table of Student's t, within 1.1 %."""
    for freedom, told in {1: 12.706, 2: 4.303, 3: 3.182, 5: 2.571, 9: 2.262, 29: 2.045}.items():
        assert student(freedom) == pytest.approx(told, rel=0.011)
    assert expanded_tails(100_000)[0] == pytest.approx(2.5, abs=0.01)
    assert expanded_tails(6)[0] < 0.3


def test_95_percent_hold_the_truth_where_requests_of_a_cluster_are_alike(few_draws: None) -> None:
    """Samples of clusters from a population whose ratio is known: intervals over requests miss it
    far more often than one time in twenty, and those over clusters do not."""
    rng = np.random.default_rng(7)
    level = rng.lognormal(0.0, 0.35, size=400)  # of each cluster in the population
    within = rng.lognormal(0.0, 0.1, size=(400, OF_EACH))
    truth = float((level[:, None] * within).mean())
    held = {"requests": 0, "clusters": 0}
    for _ in range(SAMPLES):
        drawn = rng.integers(400, size=CLUSTERS)
        values = (level[drawn, None] * within[drawn]).ravel()
        names = np.repeat(np.arange(CLUSTERS), OF_EACH).tolist()
        for unit, clusters in (("requests", None), ("clusters", names)):
            found = ratio_interval(values, np.ones(len(values)), clusters)
            assert found.low is not None and found.high is not None
            held[unit] += found.low <= truth <= found.high
    assert held["requests"] / SAMPLES < 0.75
    assert 0.90 <= held["clusters"] / SAMPLES <= 0.99


def test_95_percent_hold_the_truth_where_requests_are_independent(few_draws: None) -> None:
    rng = np.random.default_rng(8)
    population = np.stack([rng.poisson(40, 2000), rng.gamma(20.0, size=2000)], axis=1)
    truth = population[:, 0].sum() / population[:, 1].sum()
    held = 0
    for _ in range(SAMPLES):
        sample = population[rng.integers(2000, size=120)].astype(float)
        found = ratio_interval(sample[:, 0], sample[:, 1])
        assert found.low is not None and found.high is not None
        held += found.low <= truth <= found.high
    assert 0.90 <= held / SAMPLES <= 0.99
