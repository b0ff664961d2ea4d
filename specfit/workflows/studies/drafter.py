"""How far the drafter's path probabilities can be believed: results/bench/drafter_<run id>.json.

    python -m specfit.replay recording=<id> selector=specfit cache_slots=48
    python scripts/studies/study.py drafter results/replays/<run id>
Every node of every recorded pool is counted, by request, level and tenth of its path probability,
with how many of them the target's greedy continuation holds. Nodes that reach past the recorded
end of an answer are left out: whether they would have been accepted is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from specfit.base.types import PROBABILITY_ONE
from specfit.storage.recording.files import find_recording, read_recording
from specfit.storage.recording.requests import RecordedRequest
from specfit.storage.rows import load_run

BINS = 10


def counted(requests: Sequence[RecordedRequest]) -> pd.DataFrame:
    """One row per (request, level, bin): nodes, sum of their path probabilities, accepted ones."""
    frames = []
    for recorded in requests:
        pools, output = recorded.pools, recorded.output_ids
        if pools is None or output is None:
            continue
        position = np.repeat(np.arange(len(pools)), np.diff(pools.starts))
        known = position + pools.depths < len(output)
        nodes = pd.DataFrame(
            {
                "level": pools.depths,
                "bin": np.minimum(pools.path_probs * BINS // PROBABILITY_ONE, BINS - 1),
                "nodes": 1,
                "path_probs": pools.path_probs,
                "accepted": pools.accepted.astype(np.int64),
            }
        )[known]
        sums = nodes.groupby(["level", "bin"], as_index=False).sum()
        frames.append(sums.assign(request_id=recorded.request_id))
    columns = ["request_id", "level", "bin", "nodes", "path_probs", "accepted"]
    return pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame()


def study(folder: Path) -> dict[str, Any]:
    rows = load_run(folder)
    found = find_recording(str(rows.info.recording), folder.parent.parent)
    wanted = set(rows.ok_ids)
    requests = [r for r in read_recording(found).requests if r.request_id in wanted]
    table = counted(requests)
    positions = sum(r.positions for r in requests)
    print(f"{positions} positions of {len(requests)} requests")
    return {
        "info": asdict(rows.info),
        "requests": len(requests),
        "positions": positions,
        "bins": BINS,
        "counts": {name: table[name].tolist() for name in table.columns},
    }
