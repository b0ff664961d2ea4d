"""A disk in numbers: what is measured and what a profile makes of it."""

from __future__ import annotations

from pathlib import Path

from specfit.experts.disk_bandwidth import disk_parts, measure_disk
from specfit.hardware.bandwidth import Bandwidth


def test_every_size_is_read_with_every_count_of_readers_and_the_file_goes(tmp_path: Path) -> None:
    table = measure_disk(tmp_path, sizes=(4096, 16384), in_flight=(1, 2), file_bytes=1 << 20)
    named = [(row.memory, row.size_bytes) for row in table]
    assert named == [("disk x1", 4096), ("disk x1", 16384), ("disk x2", 4096), ("disk x2", 16384)]
    for row in table:
        assert 0 < row.low_gbps <= row.gbps <= row.high_gbps
        assert abs(row.gbps - row.size_bytes / row.copy_us / 1e3) < 1e-9 * row.gbps
    assert list(tmp_path.iterdir()) == []


def row(readers: int, size: int, us: float) -> Bandwidth:
    gbps = size / us / 1e3
    return Bandwidth(f"disk x{readers}", size, us, gbps, gbps, gbps)


def test_what_a_second_reader_hides_is_latency() -> None:
    table = [row(1, 50_000, 100), row(1, 1_000_000, 600), row(2, 50_000, 60), row(4, 50_000, 40)]
    assert disk_parts(table, 50_000, 2) == (50_000 / 60 / 1e3, 40.0)
    assert disk_parts(table, 50_000, 1) == (0.5, 0.0)
    assert disk_parts(table, 50_000, 3) == (50_000 / 60 / 1e3, 40.0), "as many as were tried"
    assert disk_parts(table, 40_000, 2)[1] == 32.0, "the nearest size, in proportion"
