"""Union growth and hit rates of routing traces from elsewhere, with the published figures beside.

    python scripts/trace_rates.py [--trace FILE.npz --array seqs --experts 128] [--tokens 1 4 8]

Without --trace: the public Qwen3-30B-A3B-Instruct-2507 prefill trace in $SPECFIT_DATA/traces. Rates
are event-atomic: one forward over n consecutive tokens is one access set. Numbers are counted from
the trace; no clock is involved.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np

from specfit.core import SpecfitError
from specfit.offload.traces import Trace, belady_hits, check, policy_hits, union_growth

PUBLIC = "traces/qwen3_30b_a3b_instruct2507_prefill_topk.npz"
UNION = {1: 8.0, 2: 12.4, 3: 15.8, 4: 18.8, 5: 21.3, 6: 23.5, 8: 27.2, 16: 37.2}
LRU = {8: 0.33, 16: 0.61, 24: 0.74, 32: 0.83, 48: 0.93, 64: 0.97}  # token by token


def load(path: Path, array: str) -> list[Trace]:
    """[tokens, layers, k], or several of them in [n, tokens, layers, k]."""
    with np.load(path, allow_pickle=False) as stored:
        if array not in stored.files:
            raise SpecfitError(f"{path} has no array {array!r}; it has {', '.join(stored.files)}")
        found = stored[array]
    return list(found) if found.ndim == 4 else [found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--array", default="seqs")
    parser.add_argument("--experts", type=int, default=128)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--slots", type=int, nargs="+", default=list(LRU))
    parser.add_argument("--out", type=Path, default=Path("results/bench/traces.json"))
    options = parser.parse_args()
    public = options.trace is None
    data = os.environ.get("SPECFIT_DATA")
    if public and data is None:
        parser.error("set SPECFIT_DATA, or name a file with --trace")
    path = options.trace or Path(str(data)) / PUBLIC
    traces = load(path, options.array)
    check(traces, options.experts)
    n = sum(map(len, traces))
    print(
        f"{path.name}[{options.array}]: {len(traces)} sequences, {n} tokens, "
        f"{traces[0].shape[1]} layers, {options.experts} experts, top-{traces[0].shape[2]}"
    )
    print("\ndistinct experts per layer of n consecutive tokens (mean over all windows)")
    print(f"{'n':>4}{'here':>9}{'published':>12}")
    growth = {}
    for tokens, told in UNION.items():
        growth[tokens] = union_growth(traces, tokens, options.experts)
        print(f"{tokens:4d}{growth[tokens]:9.2f}{told if public else '-':>12}")
    print(
        "\nhit rate, one forward of n tokens = one access set; contents carried between sequences"
    )
    print(f"{'n':>4}{'slots':>7}{'our policy':>12}{'Belady':>9}{'published LRU':>15}")
    rates = []
    for tokens in options.tokens:
        for slots in options.slots:
            own = policy_hits(traces, tokens, options.experts, slots)
            best = belady_hits(traces, tokens, options.experts, slots)
            assert own.hits <= best.hits and own.demand == best.demand, "Belady is a bound"
            told = f"{LRU[slots]:.2f}" if public and tokens == 1 and slots in LRU else "-"
            print(f"{tokens:4d}{slots:7d}{own.rate:12.3f}{best.rate:9.3f}{told:>15}")
            row = {"tokens": tokens, "slots": slots, "policy_hits": own.hits}
            rates.append(row | {"belady_hits": best.hits, "demand": own.demand})
    options.out.parent.mkdir(parents=True, exist_ok=True)
    document = {"trace": path.name, "array": options.array, "sequences": len(traces), "tokens": n}
    document |= {"union_growth": growth, "rates": rates}
    options.out.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
