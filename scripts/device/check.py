"""What only a GPU can show, in one process: equality, kernels, the probes, the dummy 30B.

Started by check.sh. Every section has its own verdict; one that fails or runs out of time is
written down as such and the next one runs. `--small --device cpu` is the rehearsal on a CPU.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from specfit.base.entry import needs_extras, script
from specfit.base.published import QWEN3_30B_A3B

with needs_extras():
    import pandas as pd
    import torch

ROOT = Path(__file__).resolve().parents[2]
SYSTEMS = ("ar", "ar_cache", "eagle3", "eagle3_cache", "specfit")
BUDGET_S = 460  # of the 8 minutes; a section is not begun after this
TINY = {
    "hidden_size": 64,
    "moe_intermediate_size": 16,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 4096,
}
Figures = dict[str, Any]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "device")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true", help="the rehearsal's sizes")
    parser.add_argument("--pair", type=Path, help="folder of target/ and drafter/")
    parser.add_argument("--only", help="sections, comma-separated")
    parser.add_argument("--budget", type=float, default=BUDGET_S)
    return parser.parse_args()


class Check:
    """The options, the time left, and the runs that sections share."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.begun = options, time.monotonic()
        self.device = torch.device(options.device)
        self.scratch = Path(tempfile.mkdtemp(prefix="device_check_"))
        pair = options.pair or ROOT / "specfit" / "weights" / "embedded"
        self.pair = [f"model.path={pair / 'target'}", f"drafter.path={pair / 'drafter'}"]
        self.tokenizer = pair / "target"
        self.slots = 8 if options.small else 24  # of the embedded pair
        self.cost = 50.0, 200.0  # ms of a cycle, us of an expert, until something is measured

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.begun

    def spec(self, overrides: list[str]) -> Any:
        from specfit.base.config import from_hydra
        from specfit.decoding.resolve import resolve
        from specfit.workflows.hydra_cli import compose

        # No answer is scored: the libraries that score are not on a bare machine.
        shared = [f"device={self.options.device}", f"results_dir={self.scratch}"]
        shared.append("dataset.scorer=null")
        return resolve(from_hydra(compose([*overrides, *shared])))

    def run(self, overrides: list[str]) -> Any:
        """Rows of a run; what is slow about it is on the wall clock."""
        from specfit.decoding.live import build_runtime
        from specfit.decoding.oracle_texts import is_scripted, make_script
        from specfit.storage.rows import load_run
        from specfit.workflows.execute import Watcher, execute

        spec = self.spec(overrides)
        if spec.kind.needs_cost:
            assume_cost(spec, self.scratch, *self.cost)
        if is_scripted(spec):
            make_script(spec, lambda f: execute(f, build_runtime, Watcher()) and None, print)
        return load_run(execute(spec, build_runtime, Watcher()).folder)


def assume_cost(spec: Any, results: Path, base_ms: float, expert_us: float) -> None:
    """A calibration of one constant and one slope, where there is no time for 288 probe cycles."""
    from specfit.base.config import hashed_part
    from specfit.decoding.calibration.files import _identity_parts
    from specfit.storage import identity

    wanted = hashed_part(_identity_parts(spec))
    path = results / "calibrations" / f"{identity.calibration_id(wanted)}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    sizes = range(spec.config.selector.k + 1)
    cost = {"intercepts_ns": [base_ms * 1e6 for _ in sizes], "expert_ns": expert_us * 1e3}
    document = {"identity": wanted, "cost": cost, "probe_count": 0, "leave_one_state_out": {}}
    path.write_text(json.dumps(document), encoding="utf-8")


# -- sections: each returns (passed, None where nothing is judged; figures) ------------------------


def equality(check: Check) -> tuple[bool, Figures]:
    """The embedded pair in float32: every system's ids are those of `ar` on this device."""
    from specfit.report.metrics import same_ids

    limit, tokens = (1, 12) if check.options.small else (4, 96)
    shared = [
        *check.pair,
        f"limit={limit}",
        f"max_new_tokens={tokens}",
        f"cache_slots={check.slots}",
    ]
    runs = {name: check.run([*shared, "gpu=local", f"selector={name}"]) for name in SYSTEMS}
    found = {name: same_ids(run, runs["ar"]) for name, run in runs.items()}
    return all(same.equal for same in found.values()), {n: str(s) for n, s in found.items()}


def low_precision(check: Check) -> tuple[None, Figures]:
    """bfloat16: where ids first leave `ar`'s; no verdict, since a batch's shape flips near-ties."""
    from specfit.report.metrics import same_ids

    limit, tokens = (1, 12) if check.options.small else (4, 96)
    shared = [*check.pair, f"limit={limit}", f"max_new_tokens={tokens}", "model.dtype=bfloat16"]
    shared.append(f"cache_slots={check.slots}")
    runs = [check.run([*shared, "gpu=local", f"selector={n}"]) for n in ("ar", "eagle3_cache")]
    return None, {"eagle3_cache against ar": str(same_ids(runs[1], runs[0]))}


def kernels(check: Check) -> tuple[bool | None, Figures]:
    """Error against float64, same bits one by one, and bytes per second against the memory's."""
    from scripts.device.kernels import SHARE_GOAL, errors, memory_gbps, timings

    if check.device.type != "cuda":
        return None, {"skipped": "kernels need a CUDA device; the interpreter's tests stand in"}
    found = errors(check.device)
    bandwidth = memory_gbps(check.device)
    timed = timings(check.device, bandwidth)
    accurate = all(row["passed"] for row in found)
    met = next(row["share_of_memory"] for row in timed if row["rows"] == 8) >= SHARE_GOAL
    goal = f"{SHARE_GOAL:.0%} of the memory's bandwidth at 8 rows"
    figures = {"errors": found, "timings": timed, "memory_gbps": bandwidth, "goal": goal}
    return accurate and met, figures


def layers(check: Check) -> tuple[bool | None, Figures]:
    """Fused layers and graphs of two layers in the 30B's shapes against transformers' own: errors
    and routes in float32, milliseconds in bfloat16 as well."""
    from scripts.device.layers import ERROR_GOAL, compare
    from specfit.decoding.live import build_runtime, fused_layers

    if check.device.type != "cuda":
        return None, {"skipped": "graphs need a CUDA device; recorded operations stand in"}
    figures: Figures = {"error_goal": ERROR_GOAL}
    for dtype in ("float32", "bfloat16"):
        model = [*dummy_model(check), "model.num_layers=2", "model.routing=weights"]
        spec = check.spec([*model, f"model.dtype={dtype}", "selector=ar_cache", "gpu.graphs=true"])
        kernels, capture = fused_layers(spec)
        if kernels is None or capture is None:
            return False, {"error": "Triton is not installed"}
        runtime = build_runtime(spec, spec.geometry.experts, drafts=False)
        figures[dtype] = compare(runtime, kernels, capture, check.device)
    exact = all(r["error"] <= ERROR_GOAL and r["equal_routes"] == 1.0 for r in figures["float32"])
    return exact, figures


def probe(check: Check) -> tuple[bool | None, Figures]:
    """The machine's constants, and the modelled clock against the measured one (goal 10 %; the few
    cycles of a rehearsal are not judged)."""
    limit, tokens = (2, 10) if check.options.small else (4, 48)
    sizes = [f"limit={limit}", f"max_new_tokens={tokens}", f"cache_slots={check.slots}"]
    return probed(check, [*check.pair, "gpu=local", *sizes], check.slots)


def probe_dummy(check: Check) -> tuple[bool | None, Figures]:
    """The same on the dummy's blocks of 9.4 MB: there a copy's latency is small."""
    limit, tokens = (2, 8) if check.options.small else (2, 24)
    sizes = [f"limit={limit}", f"max_new_tokens={tokens}", "cache_slots=48", "gpu=local"]
    return probed(check, [*dummy_model(check), *sizes], 48)


def probed(check: Check, overrides: list[str], slots: int) -> tuple[bool | None, Figures]:
    from specfit.decoding.live import build_runtime
    from specfit.workflows.execute import Watcher, execute
    from specfit.workflows.probing.probe import GOAL, report
    from specfit.workflows.probing.profile import probe_machine
    from specfit.workflows.probing.trials import prepare

    config = check.spec(overrides).config
    prepare(config, lambda spec: execute(spec, build_runtime, Watcher()) and None, print)
    found = probe_machine(config, slots)
    for line in report(found):
        print(line)
    worst = max(abs(c.error) for c in found.compared)
    return None if check.options.small else worst <= GOAL, found.document()


def dummy_model(check: Check) -> list[str]:
    small = check.options.small
    shapes = [f"+model.shape.{key}={value}" for key, value in TINY.items()] if small else []
    size = "model.num_layers=2" if small else "model.num_layers=48"
    return ["model=qwen3-30b-a3b-dummy", size, *shapes, f"model.tokenizer={check.tokenizer}"]


def dummy(check: Check) -> tuple[bool | None, Figures]:
    """The 30B in shape: load time, AR uncached and resident, the systems with an oracle."""
    small = check.options.small
    limit, tokens = (1, 8) if small else (2, 32)
    shared = [*dummy_model(check), f"limit={limit}", f"max_new_tokens={tokens}"]
    begin = time.monotonic()
    check_machine(check, shared)
    figures: Figures = {"load_s": round(time.monotonic() - begin, 1)}
    trials = {
        "ar": ("ar", 0),
        "ar_48": ("ar_cache", 48),
        "eagle3_48": ("eagle3_cache", 48),
        "specfit_48": ("specfit", 48),
        "ar_resident": ("ar_cache", "all" if small else "fit"),
    }
    if check.device.type == "cuda":
        trials["ar_graphs"] = trials["ar_resident"]
    for name, (selector, slots) in trials.items():
        left = check.options.budget - check.elapsed
        if left < 30 and not small:
            figures[name] = "not run: out of time"
            continue
        graphs = [f"gpu.graphs={str(name == 'ar_graphs').lower()}"]
        rows = check.run([*shared, *graphs, f"selector={selector}", f"cache_slots={slots}"])
        figures[name] = numbers(rows)
        if name == "ar_48":  # what a cycle costs without its copies, and a copy
            row = figures[name]
            block_mb = QWEN3_30B_A3B.expert_bytes() / 1e6
            gbps = row["achieved_h2d_gbps"] or 10.0
            check.cost = row["cycle_ms"] - row["wait_ms"], block_mb / gbps * 1e3
            figures["assumed_cost"] = {"base_ms": check.cost[0], "expert_us": check.cost[1]}
        print(f"dummy {name}: {figures[name]}")
    return judge(check, figures)


def check_machine(check: Check, shared: list[str]) -> None:
    """Loads the model, which later runs of this process share."""
    from specfit.decoding.live import build_runtime

    build_runtime(check.spec([*shared, "selector=ar"]), 0, drafts=False)


def numbers(rows: Any) -> Figures:
    from specfit.report.metrics import summarise, totals

    s, t = summarise(rows), totals(rows)
    verify_ns, moved = t.sum("verify_ns"), t.sum("transferred_bytes")
    state = rows.requests.iloc[-1]
    kept = (
        "achieved_h2d_gbps",
        "pcie_generation",
        "pcie_width",
        "sm_clock_mhz",
        "throttle_reasons",
    )
    return {
        "tokens_per_second": s.tokens_per_second,
        "committed_per_cycle": s.committed_per_cycle,
        "verified_per_cycle": s.verified_per_cycle,
        "cycle_ms": t.sum("cycle_ns") / t.sum("cycles") / 1e6,
        "beside_ms": beside_ms(rows),
        "wait_ms": None if s.wait_ns_per_cycle is None else s.wait_ns_per_cycle / 1e6,
        "mb_per_cycle": t.sum("transferred_bytes") / t.sum("cycles") / 1e6,
        # Beside the speed of a copy: the link's share of the time it could have been used in.
        "verify_ms": verify_ns / t.sum("cycles") / 1e6,
        "verify_gbps": moved / verify_ns if verify_ns else None,
        "hit_rate": s.hit_rate,
        "peak_device_gb": peak_gb(),
        **{key: none_if_missing(state[key]) for key in kept},
    }


def beside_ms(rows: Any) -> float:
    """Median decode cycle without its waits: the few that capture graphs are not the median."""
    decode = rows.cycles[rows.cycles["cycle"] > 0]
    return float((decode["cycle_ns"] - decode["transfer_wait_ns"]).median() / 1e6)


BESIDE_MS = 15.0
"""What a forward of 48 layers may take beside its transfers."""


def judge(check: Check, figures: Figures) -> tuple[bool | None, Figures]:
    """An uncached AR cycle takes at most its bytes over the pinned bandwidth, plus 15 ms; one with
    its experts resident and graphs takes 15 ms beside what it waits."""
    if check.device.type != "cuda" or not isinstance(figures.get("ar"), dict):
        return None, figures
    from specfit.hardware.bandwidth import measure_link

    gbps = max(row.gbps for row in measure_link(check.device) if row.memory == "pinned")
    row = figures["ar"]
    bound = row["mb_per_cycle"] / gbps + BESIDE_MS
    figures |= {"pinned_gbps": gbps, "uncached_bound_ms": bound}
    figures["copies_at_share_of_pinned"] = (row["achieved_h2d_gbps"] or 0.0) / gbps
    figures["verify_at_share_of_pinned"] = (row["verify_gbps"] or 0.0) / gbps
    met = row["cycle_ms"] <= bound and figures["copies_at_share_of_pinned"] >= 0.95
    graphs = figures.get("ar_graphs")
    if isinstance(graphs, dict):
        figures |= {"resident_beside_ms": graphs["beside_ms"], "resident_goal_ms": BESIDE_MS}
        met = met and graphs["beside_ms"] <= BESIDE_MS
    return met, figures


def none_if_missing(value: Any) -> Any:
    return None if pd.isna(value) else float(value)


def peak_gb() -> float | None:
    return torch.cuda.max_memory_allocated() / 1e9 if torch.cuda.is_available() else None


SECTIONS = {
    "equality": equality,
    "kernels": kernels,
    "layers": layers,
    "probe": probe,
    "low_precision": low_precision,
    "dummy": dummy,
    "probe_dummy": probe_dummy,
}


# -- the file --------------------------------------------------------------------------------------


def versions() -> Figures:
    names = ("torch", "transformers", "triton", "numpy", "numba", "hydra-core")
    from specfit.models.target.attention import backend_name, settle_backend

    settle_backend()
    found: Figures = {"python": platform.python_version(), "cuda": torch.version.cuda}
    found["attention"] = backend_name() if torch.cuda.is_available() else "not on a GPU"
    for name in names:
        found[name] = None
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def one(check: Check, name: str) -> Figures:
    begin = time.monotonic()
    if check.elapsed > check.options.budget:
        return {"verdict": "not tested", "reason": "out of time"}
    try:
        passed, figures = SECTIONS[name](check)
    except Exception as error:  # one section's failure must not cost the others their minutes
        traceback.print_exc()
        return {"verdict": "failed", "error": f"{type(error).__name__}: {error}"}
    verdict = {True: "passed", False: "failed", None: "no verdict"}[passed]
    seconds = round(time.monotonic() - begin, 1)
    print(f"== {name}: {verdict} in {seconds} s")
    return {"verdict": verdict, "seconds": seconds, "figures": figures}


def main() -> int:
    options = parse()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("specfit: no CUDA device or driver was found; simulate with --small --device cpu")
        return 2
    check = Check(options)
    name = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    slug = "".join(c if c.isalnum() else "_" for c in name.lower())
    wanted = options.only.split(",") if options.only else list(SECTIONS)
    document: Figures = {
        "device": name,
        "small": options.small,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": versions(),
        "sections": {},
    }
    path = options.out / f"device_{slug}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    for section in wanted:
        document["sections"][section] = one(check, section)
        document["seconds"] = round(check.elapsed, 1)
        path.write_text(json.dumps(document, indent=1, default=str) + "\n", encoding="utf-8")
    discard(check.scratch)
    print(f"{path}: {check.elapsed:.0f} s")
    verdicts = [part["verdict"] for part in document["sections"].values()]
    return 1 if "failed" in verdicts else 0


def discard(folder: Path) -> None:
    """Rows of the check are not results; at most 8 files travel back."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(script(main))
