"""The loader's benchmark on a checkpoint of a few MB: what is counted, and both places of dense
weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.bench.loader import BOUND_BYTES, measure
from scripts.device.make_checkpoint import Shapes, write_checkpoint


@pytest.mark.slow
def test_dense_weights_in_host_memory_are_no_overhead(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, Shapes(layers=1, experts=4, vocabulary=512))
    found = measure(tmp_path)
    gpu, cpu = found["as_on_a_gpu"], found["as_on_a_cpu"]
    assert gpu["store_bytes"] == cpu["store_bytes"] == 4 * 9_437_184
    assert gpu["dense_bytes"] == cpu["dense_bytes"] > 2 * 512 * 2048 * 2
    kept = cpu["store_bytes"] + cpu["dense_bytes"]
    assert cpu["peak_above_kept_bytes"] == cpu["peak_resident_bytes"] - kept
    assert gpu["peak_above_kept_bytes"] == gpu["peak_resident_bytes"] - gpu["store_bytes"]
    assert gpu["within_bound"] and cpu["within_bound"] and found["bound_bytes"] == BOUND_BYTES
    assert found["checkpoint_bytes"] > kept and found["disk_gbps"] > 0
