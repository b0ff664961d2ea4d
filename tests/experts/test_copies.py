"""The synchronous engine counts what it moves, and a capped link takes its time."""

from __future__ import annotations

import pytest
import torch

from specfit.experts.copies import CpuCopyEngine


class Stepping:
    """A timer that every look moves on by 10 ns."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += 10
        return self.now


def moved(cap: float | None) -> CpuCopyEngine:
    """Two copies of 1,000 bytes."""
    engine = CpuCopyEngine(link_gbps_cap=cap)
    engine.timer = Stepping()
    source, there = torch.arange(1000, dtype=torch.uint8), torch.zeros(1000, dtype=torch.uint8)
    for _ in range(2):
        engine.submit(source, there)
        engine.wait_oldest()
    assert torch.equal(source, there) and engine.link.moved_bytes == 2000
    return engine


@pytest.mark.parametrize("cap", [0.5, 4.0])
def test_a_capped_copy_takes_its_bytes_over_the_cap(cap: float) -> None:
    engine = moved(cap)
    assert engine.link.gbps is not None and 0.9 * cap < engine.link.gbps <= cap
    assert engine.wait_ns == engine.link.busy_ns


def test_without_a_cap_it_takes_what_it_takes() -> None:
    assert moved(None).wait_ns == 2 * 10
