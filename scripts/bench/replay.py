"""Replay speed: cycles per second of one core, at embedded size and at 48 layers.

    python scripts/bench/replay.py [--cycles 400]

Recordings are made up (random routes that drift slowly, a drafter that is right three times in
four), selection, cache, timeline and decoder are the real ones; reading files and writing rows are
outside. Time is this process's CPU time, so a busy machine slows it less than it slows a person.
The first pass over a recording makes its pools, the second finds them: both are shown.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from specfit.base.entry import needs_extras, script

with needs_extras():
    import numpy as np

    from specfit.base.interfaces import Selector
    from specfit.base.published import QWEN3_30B_A3B
    from specfit.base.types import PROBABILITY_ONE, DraftTree, Request, Routes
    from specfit.decoding.decoder import Decoder
    from specfit.decoding.replay.parts import RecordedDrafter, RecordedRoutes, RecordedTarget
    from specfit.decoding.replay.playback import Playback
    from specfit.experts.cache import ExpertCache
    from specfit.hardware.clock import ModelledClock
    from specfit.hardware.profile import Billing, Profile
    from specfit.selection.cost import CostModel
    from specfit.selection.selectors import NoDraft, SpecFit, TopProbability
    from specfit.storage.recording.requests import RecordedRequest, pools_of

EXPERTS, TOP_K, SLOTS, PROMPT = QWEN3_30B_A3B.experts, QWEN3_30B_A3B.top_k, 48, 60
LEVELS = (2, 4, 4, 4, 4)
RIGHT = 0.75  # chance that a level holds the right token below a right one
EXPERT_BYTES = QWEN3_30B_A3B.expert_bytes()
GOALS = {8: 5000, 48: 500}
PROFILE = Profile("bench", link_gbps=25.0, fixed_ms=70.0)


def pool(rng: np.random.Generator, text: np.ndarray) -> DraftTree:
    """`text` [5] is what the target says next."""
    tree, right = DraftTree.empty(), -1
    for level, size in enumerate(LEVELS):
        parents = np.full(size, -1)
        above: Any = PROBABILITY_ONE
        if level:
            newest = np.flatnonzero(tree.depths == tree.levels)
            best = newest[np.argsort(-tree.path_probs[newest], kind="stable")[:2]]
            parents = np.repeat(np.sort(best), 2)
            above = tree.path_probs[parents]
        first = rng.beta(3, 1, size // 2)
        shares = np.column_stack([first, (1 - first) * rng.random(size // 2)]).reshape(-1)
        tokens = rng.integers(1000, 30000, size)
        under = np.flatnonzero(parents == right)
        if len(under) and rng.random() < RIGHT:
            tokens[under[0]] = text[level]
            right = len(tree) + int(under[0])
        else:
            right = -2
        tree = tree.grown(tokens, parents, np.floor(above * shares).astype(np.int64))
    return tree


def recorded(layers: int, positions: int) -> RecordedRequest:
    rng = np.random.default_rng(1)
    output = rng.integers(3, 900, positions + 1)
    ahead = np.concatenate([output, np.zeros(len(LEVELS), dtype=np.int64)])
    trees = [pool(rng, ahead[i + 1 : i + 6]) for i in range(positions)]
    scores, routes = rng.standard_normal((1, layers, EXPERTS)), []
    for tree in trees:
        scores = 0.8 * scores + 0.6 * rng.standard_normal(scores.shape)
        own = 1.5 * scores + rng.standard_normal((1 + len(tree), layers, EXPERTS))
        ids = np.argsort(-own, axis=-1)[..., :TOP_K]
        routes.append(Routes(ids[0], ids[1:]))
    prompt = rng.integers(3, 900, PROMPT)
    request = Request("bench", prompt, positions + 1, frozenset({2}))
    first = rng.integers(0, EXPERTS, (PROMPT, layers, TOP_K)).astype(np.uint8)
    pools = pools_of(trees, routes, output.tolist())
    return RecordedRequest(0, "bench", "", "ok", request, output, "length", "", None, first, pools)


def replay(one: RecordedRequest, selector: Selector, layers: int) -> tuple[int, float]:
    """(cycles, CPU seconds)."""
    playback = Playback([one])
    target = RecordedTarget(playback, ExpertCache(layers, EXPERTS, SLOTS), EXPERT_BYTES, None)
    drafter = RecordedDrafter(playback, len(LEVELS)) if selector.drafts else None
    routes = RecordedRoutes(playback) if selector.reads_routes else None
    clock = ModelledClock(PROFILE, Billing("bench", 48, EXPERT_BYTES, layers, EXPERT_BYTES))
    decoder = Decoder(target, drafter, routes, selector, clock)
    assert one.request is not None
    begin = time.process_time()
    cycles = sum(1 for _ in decoder.decode(one.request))
    return cycles, time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=400, help="positions of each recording")
    parser.add_argument("--out", type=Path, default=Path("results/bench/replay.json"))
    options = parser.parse_args()
    rows = []
    print(
        f"{'layers':>6} {'selector':14}{'cycles':>8}{'first pass/s':>14}{'again/s':>10}{'goal':>7}"
    )
    for layers, goal in GOALS.items():
        cost = CostModel((85 + 0.6 * np.arange(8)) * 1e6, 377_600.0 * 48 / layers)
        selectors = (NoDraft("ar_cache"), TopProbability("eagle3_cache"), SpecFit(cost, EXPERTS))
        for selector in selectors:
            replay(recorded(layers, 8), selector, layers)  # compiles, or loads what was compiled
            one = recorded(layers, options.cycles)
            (cycles, first), (_, again) = (replay(one, selector, layers) for _ in range(2))
            row: dict[str, Any] = {"layers": layers, "selector": selector.name, "cycles": cycles}
            rows.append(row | {"first_per_s": cycles / first, "again_per_s": cycles / again})
            print(
                f"{layers:6d} {selector.name:14}{cycles:8d}{cycles / first:14.0f}"
                f"{cycles / again:10.0f}{goal:7d}"
            )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(script(main))
