"""Curves of a sweep written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from specfit.report.artifacts.sweeps import curves


def point(axis: str, value: float, system: str, tokens: list[int], ns: list[int]) -> dict[str, Any]:
    sums = {"committed_tokens": tokens, "decode_ns": ns, "verified_nodes": [3, 6], "cycles": [2, 1]}
    return {"axis": axis, "value": value, "system": system, "requests": sums}


DOCUMENT = {
    "info": {"dataset": "embedded_gsm8k"},
    "points": [
        point("beta", 0.0, "specfit", [10, 20], [10, 20]),
        point("beta", 1.0, "specfit", [10, 20], [8, 12]),
        point("k", 7, "specfit", [10, 20], [8, 12]),
        point("k", 7, "eagle3_cache", [10, 20], [20, 20]),
    ],
}


def test_every_curve_is_over_specfit_at_the_papers_settings() -> None:
    beta, k, eagle = curves([DOCUMENT])
    assert (beta.workload.stands_for, beta.axis, beta.system, beta.values) == (
        *("gsm8k", "beta", "specfit"),
        (0.0, 1.0),
    )
    assert [r.value for r in beta.ratios] == [pytest.approx(20 / 30), 1.0]
    assert k.ratios[0].value == 1.0 and eagle.ratios[0].value == pytest.approx(0.5)
    assert beta.verified == (3.0, 3.0)
    assert beta.best == (1.0, beta.ratios[1])


def test_a_sweep_without_the_papers_settings_is_no_sweep() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        curves([DOCUMENT | {"points": DOCUMENT["points"][:1]}])  # type: ignore[index]
