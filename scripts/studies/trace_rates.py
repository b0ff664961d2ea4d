"""Union growth and hit rates of routing traces from elsewhere, with the published figures beside.

    python scripts/studies/trace_rates.py [--trace FILE.npz --array seqs --experts 128]
        [--tokens 1 4 8]

Without --trace: the public Qwen3-30B-A3B-Instruct-2507 prefill trace in $SPECFIT_DATA/traces. Rates
are event-atomic: one forward over n consecutive tokens is one access set. The figures told with the
public trace count plain LRU one access after the other; that count stands beside them. Hits are
counted from the trace; speeds are modelled from them.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from specfit.base.entry import needs_extras, script

with needs_extras():
    import numpy as np

    from specfit.base.config import from_hydra
    from specfit.base.types import SpecfitError
    from specfit.experts.routing_traces import (
        Trace,
        belady_hits,
        check,
        count_uses,
        lru_hits,
        policy_hits,
        union_growth,
    )
    from specfit.hardware.reference_models import BILLED_MODELS
    from specfit.storage.atomic import write_json
    from specfit.workflows.hydra_cli import compose

PUBLIC = "traces/qwen3_30b_a3b_instruct2507_prefill_topk.npz"
UNION = {1: 8.0, 2: 12.4, 3: 15.8, 4: 18.8, 5: 21.3, 6: 23.5, 8: 27.2, 16: 37.2}
LRU = {8: 0.33, 16: 0.61, 24: 0.74, 32: 0.83, 48: 0.93, 64: 0.97}  # token by token


def load(path: Path, array: str) -> list[Trace]:
    """[tokens, layers, k], or several of them in [n, tokens, layers, k]."""
    try:
        stored = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise SpecfitError(f"{path} cannot be read as .npz arrays ({error})") from None
    if not isinstance(stored, np.lib.npyio.NpzFile):
        raise SpecfitError(f"{path} is one array; expected an .npz of named arrays")
    with stored:
        if array not in stored.files:
            raise SpecfitError(f"{path} has no array {array!r}; it has {', '.join(stored.files)}")
        try:
            found = stored[array]
        except ValueError as error:  # objects, which would be unpickled
            raise SpecfitError(f"array {array!r} of {path} cannot be read ({error})") from None
    return list(found) if found.ndim == 4 else [found]


def show_growth(traces: list[Trace], experts: int, is_public: bool) -> dict[int, float]:
    print("\ndistinct experts per layer of n consecutive tokens (mean over all windows)")
    print(f"{'n':>4}{'here':>9}{'published':>12}")
    longest = max(map(len, traces))
    sizes = [tokens for tokens in UNION if tokens <= longest]
    growth = {tokens: union_growth(traces, tokens, experts) for tokens in sizes}
    for tokens, found in growth.items():
        print(f"{tokens:4d}{found:9.2f}{UNION[tokens] if is_public else '-':>12}")
    return growth


def show_lru(
    traces: list[Trace], experts: int, slots: list[int], is_public: bool
) -> dict[int, float]:
    print("\nhit rate of plain LRU, one access after the other, contents carried on")
    print(f"{'slots':>7}{'here':>9}{'published':>12}")
    rates = {count: lru_hits(traces, experts, count).rate for count in slots}
    for count, found in rates.items():
        published = f"{LRU[count]:.2f}" if is_public and count in LRU else "-"
        print(f"{count:7d}{found:9.3f}{published:>12}")
    return rates


def show_events(
    traces: list[Trace], experts: int, sizes: list[int], slots: list[int]
) -> list[dict[str, int]]:
    print("\nhit rate, one forward of n tokens = one access set, contents carried on")
    print(f"{'n':>4}{'slots':>7}{'our policy':>12}{'Belady':>9}")
    rows = []
    for tokens in sizes:
        for count in slots:
            own = policy_hits(traces, tokens, experts, count)
            best = belady_hits(traces, tokens, experts, count)
            assert own.hits <= best.hits and own.demand == best.demand, "Belady is a bound"
            print(f"{tokens:4d}{count:7d}{own.rate:12.3f}{best.rate:9.3f}")
            row = {"tokens": tokens, "slots": count, "policy_hits": own.hits}
            rows.append(row | {"belady_hits": best.hits, "demand": own.demand})
    return rows


PROFILE = "paper_main"
POLICIES = ("lru", "lfu", "lfru", "decayed_lfu", "least_stale", "static")


def show_policies(
    traces: list[Trace], experts: int, sizes: list[int], slots: list[int]
) -> list[dict[str, Any]]:
    """`static` pins what the first trace uses most; every policy is counted on the others."""
    if len(traces) < 2:
        return []
    first, rest = count_uses(traces[:1], experts), traces[1:]
    rows: list[dict[str, Any]] = []
    for tokens in sizes:
        for count in slots:
            found = {
                name: policy_hits(
                    rest, tokens, experts, count, name, first if name == "static" else None
                )
                for name in POLICIES
            } | {"belady": belady_hits(rest, tokens, experts, count)}
            line = {"hits": {name: hits.hits for name, hits in found.items()}}
            rows.append({"tokens": tokens, "slots": count, "demand": found["lru"].demand, **line})
    names = [*POLICIES, "belady"]
    head = f"{'n':>4}{'slots':>7}" + "".join(f"{name:>13}" for name in names)
    print(f"\nhit rate by policy, all traces but the first ({len(rest)})\n{head}")
    for row in rows:
        rates = [row["hits"][name] / row["demand"] for name in names]
        print(f"{row['tokens']:4d}{row['slots']:7d}" + "".join(f"{r:13.3f}" for r in rates))
    plain = [row for row in rows if row["tokens"] == 1]
    layers, demanded = rest[0].shape[1], sum(map(len, rest))
    if layers != billed_layers():
        print(f"\nno speeds: {PROFILE} bills a model of {billed_layers()} layers, not {layers}")
        return rows
    print(f"\nAR tokens/s (modelled by profile {PROFILE}), the same traces\n{head}")
    for row in plain:
        row["ar_tokens_per_s"] = {
            name: plain_speed((row["demand"] - row["hits"][name]) / demanded, layers)
            for name in names
        }
        speeds = "".join(f"{speed:13.2f}" for speed in row["ar_tokens_per_s"].values())
        print(f"{1:4d}{row['slots']:7d}{speeds}")
    return rows


def billed_layers() -> int:
    return BILLED_MODELS[from_hydra(compose([f"gpu={PROFILE}"])).gpu.billed].layers


def plain_speed(misses: float, layers: int) -> float:
    """One token a forward: the fixed cost, then every missed expert's copy."""
    gpu = from_hydra(compose([f"gpu={PROFILE}"])).gpu
    billed = BILLED_MODELS[gpu.billed]
    assert billed.layers == layers, "the trace is of the model that the profile bills"
    assert gpu.fixed_ms is not None and gpu.link_gbps is not None
    return 1e9 / (gpu.fixed_ms * 1e6 + misses * billed.expert_bytes / gpu.link_gbps)


def main() -> int:
    try:
        rates()
    except SpecfitError as error:
        print(f"specfit: {error}", file=sys.stderr)
        return 2
    return 0


def rates() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--array", default="seqs")
    parser.add_argument("--experts", type=int, default=128)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--slots", type=int, nargs="+", default=list(LRU))
    parser.add_argument("--out", type=Path, default=Path("results/bench/traces.json"))
    options = parser.parse_args()
    public, data = options.trace is None, os.environ.get("SPECFIT_DATA")
    if public and data is None:
        parser.error("set SPECFIT_DATA, or name a file with --trace")
    path = options.trace or Path(str(data)) / PUBLIC
    traces, experts = load(path, options.array), options.experts
    least = [*options.tokens, *options.slots]
    if min(least) < 1:
        raise SpecfitError(f"--tokens and --slots are above zero, not {min(least)}")
    check(traces, experts, options.tokens)
    n, shape = sum(map(len, traces)), traces[0].shape
    print(
        f"{path.name}[{options.array}]: {len(traces)} sequences, {n} tokens, {shape[1]} layers, "
        f"{experts} experts, top-{shape[2]}"
    )
    document = {"trace": path.name, "array": options.array, "sequences": len(traces), "tokens": n}
    document |= {
        "union_growth": show_growth(traces, experts, public),
        "lru_one_by_one": show_lru(traces, experts, options.slots, public),
        "rates": show_events(traces, experts, options.tokens, options.slots),
        "policies": show_policies(traces, experts, options.tokens, options.slots),
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(options.out, document)


if __name__ == "__main__":
    sys.exit(script(main))
