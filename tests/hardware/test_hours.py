"""The estimate's arithmetic: an uncached AR token is hand-counted, order and limits hold."""

from __future__ import annotations

import pytest

from specfit.hardware.hours import SYSTEMS, Experts, Hours, Work, hours_of, system_like
from specfit.hardware.profile import Profile
from specfit.hardware.reference_models import BILLED_MODELS

NEEDS = BILLED_MODELS["qwen3-30b-a3b"]
MODEL = Experts(NEEDS.layers, NEEDS.experts, 8, NEEDS.expert_bytes)
MAIN = Profile("main", 25.0, 70.0)
NAMED = {system.name: system for system in SYSTEMS}


def hours(name: str, slots: int = 48, profile: Profile = MAIN, requests: int = 80) -> Hours:
    return hours_of(NAMED[name], MODEL, profile, slots, Work(requests, 0, 256))


def test_an_uncached_ar_token_is_70_and_145_ms() -> None:
    token_ms = 70.0 + 48 * 8 * 9_437_184 / 25e6
    prefill_ms = 70.0 + 48 * 128 * 9_437_184 / 25e6
    expected = 80 * (256 * token_ms + prefill_ms) / 3.6e6
    assert hours("ar").timed == pytest.approx(expected)
    assert token_ms == pytest.approx(214.9, abs=0.1)


def test_a_cache_a_faster_link_and_fewer_requests_help() -> None:
    assert hours("ar_cache").timed < hours("ar").timed
    assert hours("ar_cache", slots=0).timed == hours("ar").timed
    assert hours("ar", profile=Profile("fast", 55.0, 70.0)).timed < hours("ar").timed
    assert hours("specfit", requests=40).timed == pytest.approx(hours("specfit").timed / 2)


def test_only_the_atlas_is_off_the_clock() -> None:
    assert hours("specfit").elapsed > hours("specfit").timed
    assert all(hours(n).elapsed == hours(n).timed for n in NAMED if n != "specfit")


def test_with_every_expert_resident_nothing_is_copied() -> None:
    slow = Profile("slow", 0.001, 70.0)
    assert hours("eagle3_cache", slots=128, profile=slow) == hours("eagle3_cache", slots=128)


def test_a_serial_machine_adds_copies_and_experts() -> None:
    """One uncached token of 2 layers and 2 experts: (1 + 0.5 ms) x 4 beside 3 ms fixed; a prompt of
    4 experts a layer: 3 + 10 x 0.1 + 8 x 1.5 ms."""
    small = Experts(layers=2, per_layer=4, top_k=2, expert_bytes=1_000_000)
    slow = {"link_gbps": 2.0, "fixed_ms": 3.0, "prefill_token_ms": 0.1, "expert_us": 1000.0}
    serial, overlapping = (
        Profile("p", overlap=overlap, **slow)  # type: ignore[arg-type]
        for overlap in (False, True)
    )
    work = Work(1, 10, 5)
    token_ms, prompt_ms = 3 + 4 * 1.5, 3 + 1 + 8 * 1.5
    found = hours_of(NAMED["ar"], small, serial, 0, work)
    assert found.timed == pytest.approx((5 * token_ms + prompt_ms) / 3.6e6)
    found = hours_of(NAMED["ar"], small, overlapping, 0, work)
    assert found.timed == pytest.approx((5 * (3 + 4) + 3 + 1 + 8) / 3.6e6), "copies are hidden"


def test_other_selectors_are_estimated_as_what_they_resemble() -> None:
    assert system_like("specfit", True, True) is NAMED["specfit"]
    rival = system_like("rival", drafts=True, reads_routes=True)
    assert (rival.name, rival.rows) == ("rival", NAMED["specfit"].rows)
    assert system_like("other", drafts=True, reads_routes=False).levels == 5
    assert system_like("plain", drafts=False, reads_routes=False).rows == 1
