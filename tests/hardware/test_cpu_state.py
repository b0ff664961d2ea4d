"""What Linux says of the cores, read from folders made by hand; what it does not say is null."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from specfit.hardware.cpu_state import CpuReading, CpuWatch


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 2}, raising=False)


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def machine(root: Path, khz: int, throttles: int, stat: str) -> None:
    for core in (0, 1, 2):
        folder = f"sys/devices/system/cpu/cpu{core}"
        write(root, f"{folder}/cpufreq/scaling_cur_freq", f"{khz + 1000 * core}\n")
        write(root, f"{folder}/thermal_throttle/core_throttle_count", f"{throttles}\n")
    write(root, "proc/stat", f"{stat}\ncpu0 1 1 1 1\n")


def test_clocks_are_means_and_counts_are_differences_over_the_cores_in_use(tmp_path: Path) -> None:
    machine(tmp_path, 2_000_000, 5, "cpu  100 0 50 800 50 0 0 10 0 0")
    watch = CpuWatch(tmp_path)
    watch.start()
    machine(tmp_path, 3_000_000, 8, "cpu  160 0 60 810 50 0 0 30 0 0")
    found = watch.stop()
    assert found == CpuReading(cpu_clock_mhz=2501.0, cpu_throttles=6, cpu_steal_share=0.2)
    assert watch.stop() == CpuReading(), "nothing has begun"


def test_a_virtual_machine_has_the_clock_that_cpuinfo_says(tmp_path: Path) -> None:
    listed = "".join(f"processor\t: {i}\ncpu MHz\t\t: {2400 + 100 * i}.5\n\n" for i in range(3))
    write(tmp_path, "proc/cpuinfo", listed)
    watch = CpuWatch(tmp_path)
    watch.start()
    assert watch.stop() == CpuReading(cpu_clock_mhz=2500.5)


def test_a_system_that_says_nothing_gives_nulls(tmp_path: Path) -> None:
    watch = CpuWatch(tmp_path)
    watch.start()
    assert watch.stop() == CpuReading()
