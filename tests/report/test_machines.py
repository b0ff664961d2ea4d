"""A throttled or narrower baseline is not credited to the selector."""

from __future__ import annotations

from typing import Any

import pytest

from specfit.report.explain import explain
from specfit.report.explained import screen, short
from specfit.report.footer import stamp_of
from specfit.report.machines import unequal
from specfit.report.quantities import QUANTITIES
from specfit.report.run_summary import closing_table
from specfit.storage.rows import RunRows
from specfit.storage.tables import MachineState
from tests.fakes.rows import part, rows_of

FINE: dict[str, Any] = {
    "pcie_generation": 4,
    "pcie_width": 16,
    "sm_clock_mhz": 2500.0,
    "throttle_reasons": 0,
    "power_limit_w": 450.0,
    "achieved_h2d_gbps": 24.0,
}


def run(
    name: str, clock: str = "wall", info: dict[str, Any] | None = None, **changes: Any
) -> RunRows:
    state = MachineState(**FINE | changes)
    about = {"run_id": name, "clock": clock, "selector": name} | (info or {})
    return rows_of([part("a", machine=state), part("b", machine=state)], **about)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"throttle_reasons": 4}, "throttle reasons: 0 in specfit, 4 in ar"),
        ({"pcie_width": 8}, "PCIe lanes: 16 in specfit, 8 in ar"),
        ({"pcie_generation": 3}, "PCIe generation: 4"),
        ({"power_limit_w": 300.0}, "power limit, W: 450 in specfit, 300 in ar"),
        ({"sm_clock_mhz": 1800.0}, "SM clock, MHz: 2500 in specfit, 1800 in ar"),
        ({"achieved_h2d_gbps": 12.0}, "link, GB/s: 24 in specfit, 12 in ar"),
        ({"throttle_reasons": None}, "throttle reasons: 0 in specfit, unknown in ar"),
        ({"info": {"device": "another"}}, "device: "),
        ({"info": {"threads": 7}}, "threads: "),
    ],
)
def test_an_unequal_machine_is_named_and_nothing_is_divided(
    changes: dict[str, Any], words: str
) -> None:
    ours, theirs = run("specfit"), run("ar", **changes)
    assert any(words in text for text in unequal(ours, theirs))
    e = explain(ours, theirs)
    for text in (screen(e), short(e)):
        assert words in text and "times as fast as" not in text and "equally fast:" not in text
    (line,) = [x for x in closing_table(ours, theirs) if x.label == "speed-up over ar"]
    assert line.value is None and words in line.note
    assert QUANTITIES["speed"].ratio(ours, theirs).value is None
    assert QUANTITIES["committed"].ratio(ours, theirs).value is not None, "counts need no machine"
    assert words in stamp_of([ours, theirs], "live").text


def test_equal_and_modelled_runs_are_compared() -> None:
    assert unequal(run("specfit"), run("ar", sm_clock_mhz=2450.0, achieved_h2d_gbps=23.0)) == ()
    assert unequal(run("specfit", "modelled"), run("ar", "modelled", throttle_reasons=4)) == ()
    assert QUANTITIES["speed"].ratio(run("specfit"), run("ar")).value is not None
    assert "unequal" not in stamp_of([run("specfit"), run("ar")], "live").text


def test_the_sentences_of_a_comparison_ask_first() -> None:
    from specfit.report.comparison import _over

    said = _over(run("specfit"), run("ar_cache", throttle_reasons=4))
    assert said is not None and "unequal machines (throttle reasons: 0" in said
    assert "unequal" not in str(_over(run("specfit"), run("ar_cache")))
