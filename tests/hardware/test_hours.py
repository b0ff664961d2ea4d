"""The estimate's arithmetic: an uncached AR token is hand-counted, order and limits hold."""

from __future__ import annotations

import pytest

from specfit.hardware.billed import BILLED_MODELS
from specfit.hardware.hours import SYSTEMS, Hours, hours_of
from specfit.hardware.profile import Profile

NEEDS = BILLED_MODELS["qwen3-30b-a3b"]
MAIN = Profile("main", 25.0, 70.0)
NAMED = {system.name: system for system in SYSTEMS}


def hours(name: str, slots: int = 48, profile: Profile = MAIN, requests: int = 80) -> Hours:
    return hours_of(NAMED[name], NEEDS, profile, 8, slots, requests, 0, 256)


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
