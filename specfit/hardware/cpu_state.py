"""What the CPU was like while a request ran, as Linux tells it; null where it does not.

Read before and after, never meanwhile: a thread that looks would take time from what is timed.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from specfit.hardware.system_info import text_of


@dataclass(frozen=True)
class CpuReading:
    """Of one request; None where the system does not say."""

    cpu_clock_mhz: float | None = None
    cpu_throttles: int | None = None
    cpu_steal_share: float | None = None


@dataclass(frozen=True)
class _Look:
    clock_mhz: float | None
    throttles: int | None
    ticks: tuple[int, ...]  # of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal


STEAL = 7


class CpuWatch:
    """`root` has proc and sys; only the cores that this process may use are read."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._begun: _Look | None = None
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
        self._cores = sorted(cores)

    def start(self) -> None:
        self._begun = self._look()

    def stop(self) -> CpuReading:
        """What has happened since `start`: the mean of both clocks, and differences of counts."""
        if self._begun is None:
            return CpuReading()
        begun, now = self._begun, self._look()
        self._begun = None
        clocks = [look.clock_mhz for look in (begun, now) if look.clock_mhz is not None]
        throttles = None
        if begun.throttles is not None and now.throttles is not None:
            throttles = now.throttles - begun.throttles
        return CpuReading(
            sum(clocks) / len(clocks) if clocks else None, throttles, _stolen(begun, now)
        )

    def _look(self) -> _Look:
        counts = [
            self._number(core, "thermal_throttle/core_throttle_count") for core in self._cores
        ]
        known = [count for count in counts if count is not None]
        return _Look(self._clock_mhz(), sum(known) if known else None, self._ticks())

    def _clock_mhz(self) -> float | None:
        """Mean over the cores: as the governor says, else as /proc/cpuinfo does (some virtual
        machines have one number there, whatever the core does)."""
        governed = [self._number(core, "cpufreq/scaling_cur_freq") for core in self._cores]
        clocks = [kilohertz / 1e3 for kilohertz in governed if kilohertz is not None]
        if not clocks:
            text = text_of(self._root / "proc/cpuinfo")
            listed = [float(mhz) for mhz in re.findall(r"^cpu MHz\s*: ([0-9.]+)", text, re.M)]
            clocks = [listed[core] for core in self._cores if core < len(listed)]
        return sum(clocks) / len(clocks) if clocks else None

    def _number(self, core: int, name: str) -> int | None:
        text = text_of(self._root / f"sys/devices/system/cpu/cpu{core}/{name}").strip()
        return int(text) if text.isdigit() else None

    def _ticks(self) -> tuple[int, ...]:
        first = text_of(self._root / "proc/stat").partition("\n")[0].split()
        return tuple(map(int, first[1 : STEAL + 2])) if first[:1] == ["cpu"] else ()


def _stolen(begun: _Look, now: _Look) -> float | None:
    """Of the whole machine's core time: what a hypervisor gave to others."""
    spent = [b - a for a, b in zip(begun.ticks, now.ticks, strict=False)]
    return spent[STEAL] / sum(spent) if len(spent) > STEAL and sum(spent) > 0 else None
