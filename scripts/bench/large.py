"""The 30B's shapes at four layers, experts on disk: tokens a second, reads and memory, measured.

    python scripts/bench/large.py [--slots 24] [--requests 2] [--tokens 32] [--folder DIR]

Random weights; routes from a chain fitted to real traces; drafts and committed ids are a script's
(model=qwen3-30b-a3b-dummy), so times and copies are real and texts are not. Every system is a
process of its own, and so is the making of the pack, 4.8 GB: what each held at most is its own.
Everything lies in --folder, by default a temporary one, and is removed afterwards.
Leaves results/bench/large.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from specfit.base.entry import script  # noqa: E402
from specfit.base.types import SpecfitError  # noqa: E402

BOUND_BYTES = 3_500_000_000
SYSTEMS = ("ar", "ar_cache", "eagle3", "eagle3_cache", "specfit")
MAKING = "making the pack"
SHOWN = ("tokens_per_second", "experts_per_token", "committed_per_cycle")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--slots", type=int, default=24, help="of the cached systems")
    parser.add_argument("--requests", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--systems", nargs="+", default=SYSTEMS)
    parser.add_argument("--folder", type=Path, help="on the disk that is measured")
    parser.add_argument("--child", metavar="SYSTEM", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "bench" / "large.json")
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    options = parser.parse_args()
    if options.child:
        print(json.dumps(run_one(options.child, options.overrides)))
        return 0
    from specfit.storage.atomic import write_json
    from specfit.storage.provenance import collect

    found = measure(options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(options.out, found | {"provenance": collect().as_dict()})
    print("\n".join(lines(found)))
    return 0


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Of each system what its process says; raises SpecfitError where one fails."""
    folder = Path(tempfile.mkdtemp(prefix="specfit-large-", dir=options.folder))
    shared = [
        *("model=qwen3-30b-a3b-dummy", "gpu=local", "device=cpu", "offload.tier=disk"),
        *(f"model.num_layers={options.layers}", f"offload.pack={folder / 'packs'}"),
        *(f"results_dir={folder / 'results'}", "dataset=embedded_gsm8k", "calibration.at=own"),
        *(f"limit={options.requests}", f"max_new_tokens={options.tokens}"),
        *(f"cache_slots={options.slots}", *options.overrides),
    ]
    try:
        found = {name: in_a_process(name, shared) for name in (MAKING, *options.systems)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    shape = {"layers": options.layers, "slots": options.slots, "requests": options.requests}
    return shape | {"tokens": options.tokens, "bound_bytes": BOUND_BYTES, "systems": found}


def in_a_process(name: str, overrides: Sequence[str]) -> dict[str, Any]:
    line = [sys.executable, __file__, "--child", name, *overrides]
    child = subprocess.run(line, capture_output=True, text=True)
    if child.returncode:
        said = child.stderr.strip().splitlines()
        raise SpecfitError(f"{name}: {said[-1] if said else 'its process ended'}")
    found: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return found


def run_one(name: str, overrides: Sequence[str]) -> dict[str, Any]:
    """In a child: the pack alone, or a run; the script that a run needs is made by the first."""
    from specfit.base.config import from_hydra
    from specfit.decoding.live import build_runtime
    from specfit.decoding.resolve import resolve
    from specfit.workflows.hydra_cli import compose

    selector = "ar" if name == MAKING else name
    spec = resolve(from_hydra(compose([*overrides, f"selector={selector}"])))
    if name == MAKING:
        runtime = build_runtime(spec, 0, drafts=False)
        store: Any = runtime.loaded.store
        return {"peak_bytes": peak_bytes(), "pack_bytes": store.total_bytes}
    from specfit.workflows.live_run import perform

    return numbers(perform(spec).folder) | {"peak_bytes": peak_bytes()}


def numbers(folder: Path) -> dict[str, Any]:
    """Decode alone; copies are reads from disk."""
    from specfit.report.metrics import summarise, totals
    from specfit.storage.rows import load_run

    rows = load_run(folder)
    s, t = summarise(rows), totals(rows)
    return {
        "tokens_per_second": s.tokens_per_second,
        "committed_per_cycle": s.committed_per_cycle,
        "verified_per_cycle": s.verified_per_cycle,
        "experts_per_token": s.experts_per_token,
        "experts_per_cycle": t.sum("transferred_experts") / t.sum("cycles"),
        "hit_rate": s.hit_rate,
        "decode_tokens": s.decode_tokens,
        "device": rows.info.device,
        "disk_reads": sorted(set(rows.requests["disk_reads"].dropna())),
        "read_gbps": float(rows.requests["achieved_h2d_gbps"].median()),
    }


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def lines(found: dict[str, Any]) -> list[str]:
    """What a person reads; speeds beside AR + cache of the same call."""
    systems = found["systems"]
    told = [
        f"{'system':16} {'tokens/s':>9} {'reads/token':>12} {'tokens/cycle':>13} {'peak GB':>8}"
    ]
    for name, row in systems.items():
        peak = f"{row['peak_bytes'] / 1e9:.2f}"
        numbers = [row.get(key) for key in SHOWN]
        cells = ["-" if value is None else f"{value:.2f}" for value in numbers]
        told.append(f"{name:16} {cells[0]:>9} {cells[1]:>12} {cells[2]:>13} {peak:>8}")
    worst = max(row["peak_bytes"] for row in systems.values())
    word = "within" if worst <= found["bound_bytes"] else "above"
    told.append(f"{worst / 1e9:.2f} GB of memory at most, {word} {found['bound_bytes'] / 1e9:.1f}")
    return told


if __name__ == "__main__":
    sys.exit(script(main))
