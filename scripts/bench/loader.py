"""Peak memory and speed of the streaming loader, beside the disk's own speed.

    python scripts/bench/loader.py                     # makes 8.5 GB in a temporary folder
    python scripts/bench/loader.py --checkpoint /path  # an existing folder

Each load runs in a process of its own, so that its peak is the loader's. As on a GPU, dense weights
go to a device that is not host memory: torch's meta device, which drops what it is given. As on a
CPU, they stay in host memory and are, like the store, what was asked for; only what is held above
both is the loader's own. Before each read the files are dropped from the page cache
(posix_fadvise), as far as the system obeys. Leaves results/bench/loader.json.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from specfit.base.entry import script  # noqa: E402
from specfit.base.types import SpecfitError  # noqa: E402

BOUND_BYTES = 2_000_000_000
BLOCK = 8 << 20
DEVICES = {"as_on_a_gpu": "meta", "as_on_a_cpu": "cpu"}


def shard_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def drop_pages(folder: Path) -> None:
    for path in shard_files(folder):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def disk_speed(folder: Path) -> dict[str, float]:
    """Reading every shard once, in order, into one buffer."""
    buffer = memoryview(bytearray(BLOCK))
    total, begin, used = 0, time.perf_counter(), time.process_time()
    for path in shard_files(folder):
        with path.open("rb", buffering=0) as file:
            while got := file.readinto(buffer):
                total += got
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - used
    return {"disk_gbps": total / seconds / 1e9, "disk_gb_per_cpu_s": total / cpu_seconds / 1e9}


def load(folder: Path, device: str) -> dict[str, Any]:
    """Run in a child: one load, its time and what it held at most."""
    import torch

    from specfit.models.target.checkpoint import Checkpoint
    from specfit.models.target.loading import load_model

    torch.set_num_threads(1)
    before = peak_bytes()
    begin, used = time.perf_counter(), time.process_time()
    loaded = load_model(Checkpoint(folder), torch.bfloat16, torch.device(device), None)
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - used
    dense = sum(p.numel() * p.element_size() for p in loaded.model.parameters())
    moved = loaded.store.total_bytes + dense
    resident = loaded.store.total_bytes + (dense if device == "cpu" else 0)
    above = peak_bytes() - resident
    return {
        "store_bytes": loaded.store.total_bytes,
        "dense_bytes": dense,
        "dense_in_host_memory": device == "cpu",
        "seconds": seconds,
        "gbps": moved / seconds / 1e9,
        "gb_per_cpu_s": moved / cpu_seconds / 1e9,
        "resident_before_bytes": before,
        "peak_resident_bytes": peak_bytes(),
        "peak_above_kept_bytes": above,
        "within_bound": above <= BOUND_BYTES,
        "load_average": os.getloadavg()[0],  # of a busy machine, speeds say little
    }


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(folder: Path) -> dict[str, Any]:
    drop_pages(folder)
    found: dict[str, Any] = {
        "checkpoint_bytes": sum(path.stat().st_size for path in shard_files(folder)),
        "shards": len(shard_files(folder)),
        **disk_speed(folder),
        "bound_bytes": BOUND_BYTES,
        "cpu_count": os.cpu_count(),
    }
    for name, device in DEVICES.items():
        drop_pages(folder)
        child = subprocess.run(
            [sys.executable, __file__, "--load", str(folder), "--device", device],
            capture_output=True,
            text=True,
        )
        if child.returncode:
            said = child.stderr.strip().splitlines()
            raise SpecfitError(said[-1].removeprefix("specfit: ") if said else "the load ended")
        found[name] = json.loads(child.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="peak memory and speed of the loader")
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--layers", type=int, default=7, help="of the checkpoint that is made")
    parser.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--device", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "bench" / "loader.json")
    chosen = parser.parse_args()
    if chosen.load is not None:
        print(json.dumps(load(chosen.load, chosen.device)))
        return
    folder, made = chosen.checkpoint, None
    if folder is not None and not shard_files(folder):
        raise SpecfitError(f"{folder} holds no .safetensors file; name a checkpoint's folder")
    if folder is None:
        from scripts.device.make_checkpoint import Shapes, write_checkpoint

        folder = made = Path(tempfile.mkdtemp(prefix="specfit-loader-"))
        write_checkpoint(folder, replace(Shapes(), layers=chosen.layers))
    try:
        found = measure(folder)
    finally:
        if made is not None:
            shutil.rmtree(made)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    sys.exit(script(main))
