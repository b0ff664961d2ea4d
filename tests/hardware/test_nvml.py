"""Readings of a made-up card: what is refused is null, and load decides what is kept."""

from __future__ import annotations

import time
from typing import Any

from specfit.hardware.nvml import Reading, Watch, summary


class Card:
    """NVML as far as it is used; idle at first, under load afterwards; says no clock."""

    def __init__(self) -> None:
        self.asked = 0

    def nvmlInit(self) -> None: ...

    def __getattr__(self, name: str) -> Any:
        answers = {
            "nvmlDeviceGetHandleByUUID": lambda uuid: f"handle of {uuid}",
            "nvmlDeviceGetCurrPcieLinkGeneration": lambda handle: self._generation(),
            "nvmlDeviceGetCurrPcieLinkWidth": lambda handle: 16,
            "nvmlDeviceGetTemperature": lambda handle, sensor: 40 + self.asked,
            "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 1 if self.asked < 2 else 4,
            "nvmlDeviceGetPowerManagementLimit": lambda handle: 700_000,
        }
        if name not in answers:
            raise AttributeError(name)
        return answers[name]

    def _generation(self) -> int:
        self.asked += 1
        return 1 if self.asked < 2 else 5


def test_a_watch_keeps_what_was_seen_under_load() -> None:
    watch = Watch("GPU-1", Card(), period_s=0.001)
    watch.start()
    time.sleep(0.05)
    state = watch.stop()
    assert (state.pcie_generation, state.pcie_width, state.power_limit_w) == (5, 16, 700.0)
    assert state.temperature_c is not None and state.temperature_c > 41
    assert state.throttle_reasons == 4, "idle is no reason"
    assert state.sm_clock_mhz is None, "this card refuses to say"
    watch.start()
    assert watch.stop() != Reading(), "a watch can be used again"


def test_without_a_gpu_everything_is_null() -> None:
    for watch in (Watch(None, Card()), Watch("GPU-1", object())):
        watch.start()
        assert watch.stop() == Reading()
    assert summary([]) == Reading()
