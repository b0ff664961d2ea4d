"""A 30B-shaped target of random values in each format: host bytes, disk bytes, time per expert.

    python scripts/bench/formats.py                                # FP8 and int4, 4 layers
    python scripts/bench/formats.py --formats bf16 --layers 2 --folder /mnt/nvme

Experts are made in host memory, packed in a folder of their own below --folder, read back, widened
and computed one at a time by one thread; the folder is removed afterwards. Bytes are the same on
any machine, times are not. Leaves results/bench/formats.json.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from specfit.base.entry import needs_extras, script

with needs_extras():
    import numpy as np
    import torch

    from specfit.base.config import FORMATS
    from specfit.experts.arithmetic import LayerWork, sort_by_item
    from specfit.experts.disk_weights import DiskStore
    from specfit.experts.host_weights import ExpertStore
    from specfit.experts.kernels.choice import choose_arithmetic
    from specfit.experts.pack import PackShape, PackWriter, aligned_bytes
    from specfit.models.target.dummy import RandomCheckpoint, load_random
    from specfit.models.target.loading import LoadedModel, packed
    from specfit.workflows.studies import write_study

DUMMY = "package:weights/qwen3-30b-a3b-dummy"
CPU = torch.device("cpu")
TIMED = 24
"""Experts that each time is the median of, spread over the layers."""


def measure(format: str, layers: int, folder: Path) -> dict[str, Any]:
    """Raises SpecfitError where memory or the disk has no room."""
    from specfit.decoding.spec import locate

    began = time.process_time()
    checkpoint = RandomCheckpoint(locate(DUMMY), {}, format)
    loaded = load_random(checkpoint, torch.bfloat16, CPU, layers)
    host = loaded.store
    assert isinstance(host, ExpertStore)
    shape = PackShape(checkpoint.digest(), host.layers, host.experts, host.format)
    disk = packed(folder, shape, lambda writer: _copy(host, writer))
    assert isinstance(disk, DiskStore)
    chosen = np.linspace(0, host.layers * host.experts - 1, TIMED).astype(int)
    places = [divmod(int(index), host.experts) for index in chosen]
    buffer = aligned_bytes(shape.stride_bytes)[: host.block_bytes].view(host.format.storage)
    run = _one_row(loaded)
    same = all(torch.equal(disk.block(*at), host.block(*at)) for at in places)
    return {
        "format": host.format.name,
        "layers": host.layers,
        "experts": host.experts,
        "expert_bytes": host.block_bytes,
        "host_bytes": host.total_bytes,
        "disk_bytes": disk.path.stat().st_size,
        "disk_is_host": same,
        "disk_reads": disk.reads,
        "read_ms": _median_ms(places, lambda layer, expert: disk.read_into(layer, expert, buffer)),
        "widen_ms": _median_ms(places, lambda layer, e: host.format.widen(host.block(layer, e))),
        "one_row_ms": _median_ms(places, lambda layer, e: run(host.block(layer, e))),
        "cpu_s": time.process_time() - began,
        "load_average": os.getloadavg()[0],  # of a busy machine, times say little
        "cpu_count": os.cpu_count(),
    }


def _copy(host: ExpertStore, writer: PackWriter) -> None:
    for layer in range(host.layers):
        for expert in range(host.experts):
            parts = host.format.views(host.block(layer, expert))
            for place, part in zip(writer.places(layer, expert), parts, strict=True):
                place.copy_(part)
            writer.mark_written(layer, expert)
    writer.freeze()


def _one_row(loaded: LoadedModel) -> Callable[[torch.Tensor], object]:
    """Widening and products of one expert for one row."""
    format, shape = loaded.format, loaded.geometry
    arithmetic = choose_arithmetic("auto", loaded.activation, CPU, format, loaded.lift)
    hidden = torch.randn(1, shape.hidden, dtype=torch.bfloat16)
    weights = torch.ones(1, 1, dtype=torch.bfloat16)
    places, starts = sort_by_item(np.array([[0]]), [0])
    table = torch.from_numpy(np.concatenate([places, starts, [0]]))

    def run(block: torch.Tensor) -> object:
        outputs = torch.empty(1, shape.hidden, dtype=torch.bfloat16)
        work = LayerWork(hidden, outputs, 1, shape.intermediate, starts, [0], table)
        arithmetic.run(block[None], 0, 1, work)
        return arithmetic.finish(work, weights)

    return run


def _median_ms(places: list[tuple[int, int]], once: Callable[[int, int], object]) -> float:
    once(*places[0])
    times = []
    for at in places:
        begin = time.perf_counter()
        once(*at)
        times.append(1e3 * (time.perf_counter() - begin))
    return float(np.median(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS[1:]))
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--folder", type=Path, help="where the pack is made; the system's own")
    parser.add_argument("--out", type=Path, default=Path("results/bench/formats.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = []
    for format in options.formats:
        folder = Path(tempfile.mkdtemp(prefix="specfit-", dir=options.folder))
        try:
            found.append(measure(format, options.layers, folder))
        finally:
            shutil.rmtree(folder)
        print(found[-1])
    write_study("formats", {"formats": found}, options.out)


if __name__ == "__main__":
    sys.exit(script(main))
