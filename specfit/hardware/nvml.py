"""What the GPU was like while a request ran, read through NVML; all null where there is none.

An idle card drops its PCIe generation and clocks, so a thread reads a few times a second while work
goes on. `nvidia-ml-py` is optional, and a driver may refuse any single value.
"""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

PERIOD_S = 0.25
GPU_IDLE = 1
"""The one bit of the throttle reasons that is no throttling."""


@dataclass(frozen=True)
class Reading:
    """One look at the card; None where the driver does not say."""

    pcie_generation: int | None = None
    pcie_width: int | None = None
    sm_clock_mhz: float | None = None
    temperature_c: float | None = None
    throttle_reasons: int | None = None
    power_limit_w: float | None = None


def summary(readings: list[Reading]) -> Reading:
    """Under load: the best link seen, the median clock, the highest temperature, every reason."""

    def seen(name: str) -> list[Any]:
        values = (getattr(reading, name) for reading in readings)
        return [value for value in values if value is not None]

    def reduced(name: str, how: Callable[[list[Any]], Any]) -> Any:
        values = seen(name)
        return how(values) if values else None

    return Reading(
        pcie_generation=reduced("pcie_generation", max),
        pcie_width=reduced("pcie_width", max),
        sm_clock_mhz=reduced("sm_clock_mhz", statistics.median),
        temperature_c=reduced("temperature_c", max),
        throttle_reasons=reduced("throttle_reasons", _union),
        power_limit_w=reduced("power_limit_w", min),
    )


def _union(reasons: list[int]) -> int:
    every = 0
    for bits in reasons:
        every |= bits
    return every & ~GPU_IDLE


class Watch:
    """Reads the card until `stop`; `uuid` is the driver's name for it, None = there is no GPU."""

    def __init__(
        self, uuid: str | None, nvml: Any | None = None, period_s: float = PERIOD_S
    ) -> None:
        self._nvml = nvml if nvml is not None else _pynvml()
        self._handle = None
        if uuid is not None and self._nvml is not None:
            with suppress(Exception):  # NVML has an error class of its own for everything
                self._nvml.nvmlInit()
                self._handle = self._nvml.nvmlDeviceGetHandleByUUID(uuid)
        self._period_s = period_s
        self._readings: list[Reading] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._handle is None:
            return
        assert self._thread is None, "one watch at a time"
        self._readings, self._stop = [], threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> Reading:
        """What was seen since `start`."""
        if self._thread is None:
            return Reading()
        self._stop.set()
        self._thread.join()
        self._thread = None
        return summary(self._readings)

    def _watch(self) -> None:
        while True:
            self._readings.append(self.read())
            if self._stop.wait(self._period_s):
                self._readings.append(self.read())
                return

    def read(self) -> Reading:
        nvml, handle = self._nvml, self._handle
        assert nvml is not None and handle is not None

        def ask(*names: str, extra: tuple[Any, ...] = ()) -> Any:
            for name in names:  # newer name first
                with suppress(Exception):
                    return getattr(nvml, name)(handle, *extra)
            return None

        clock = ask("nvmlDeviceGetClockInfo", extra=(1,))  # NVML_CLOCK_SM
        heat = ask("nvmlDeviceGetTemperature", extra=(0,))  # NVML_TEMPERATURE_GPU
        limit = ask("nvmlDeviceGetPowerManagementLimit")
        return Reading(
            pcie_generation=ask("nvmlDeviceGetCurrPcieLinkGeneration"),
            pcie_width=ask("nvmlDeviceGetCurrPcieLinkWidth"),
            sm_clock_mhz=None if clock is None else float(clock),
            temperature_c=None if heat is None else float(heat),
            throttle_reasons=ask(
                "nvmlDeviceGetCurrentClocksEventReasons",
                "nvmlDeviceGetCurrentClocksThrottleReasons",
            ),
            power_limit_w=None if limit is None else limit / 1e3,
        )


def _pynvml() -> Any | None:
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml
