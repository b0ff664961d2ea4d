from __future__ import annotations

import pytest

from specfit.report.quantities import BILLED_EXPERT_BYTES, QUANTITIES, copy_scale, score
from tests.fakes.rows import part, rows_of

RUN = rows_of([part("a", (1, 2, 3)), part("b", (1, 4))])  # 9 tokens in 3 cycles of 4 ms


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("speed", 9 / 0.012),
        ("speed_with_prefill", 11 / 0.020),
        ("committed", 3.0),
        ("verified", 2.0),
        ("cycle", 4.0),
        ("experts", 12 / 9),
        ("experts_with_prefill", 20 / 11),
        ("transfers", 4.0),
        ("demand", 10.0),
        ("hit_rate", 60.0),
    ],
)
def test_every_quantity_is_a_sum_over_a_sum(name: str, value: float) -> None:
    assert QUANTITIES[name].of(RUN).value == pytest.approx(value)


def test_a_ratio_is_paired_and_leaves_failed_requests_out() -> None:
    base = rows_of([part("a", (1, 1, 1)), part("b", status="late")], "b" * 12)
    found = QUANTITIES["committed"].ratio(RUN, base)
    assert (found.value, found.n, found.excluded) == (2.5, 1, 1)


def test_copies_are_those_of_the_billed_model() -> None:
    """Six billed copies for one of ours, as billed bytes say; a run billed as itself counts own."""
    size = BILLED_EXPERT_BYTES["qwen3-30b-a3b"]
    assert size == 9_437_184
    bill = {"billed_bytes": 6 * 4 * size}
    parts = [part("a", (1, 2), **bill)]
    parts[0].cycles[0] = (
        parts[0]
        .cycles[0]
        .__class__(
            **{n: getattr(parts[0].cycles[0], n) for n in parts[0].cycles[0].columns()} | bill
        )
    )
    billed = rows_of(parts, billed="qwen3-30b-a3b")
    assert copy_scale(billed) == pytest.approx(6.0)
    assert QUANTITIES["experts"].of(billed).value == pytest.approx(6 * 4 / 2)
    assert copy_scale(rows_of(parts, billed="self")) == 1.0


def test_a_score_is_a_mean_over_requests_that_have_one() -> None:
    assert score(RUN, "score").value == 1.0
    assert score(RUN, "rouge1").value is None
