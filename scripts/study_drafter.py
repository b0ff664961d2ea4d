"""How far the drafter's path probabilities can be believed: results/bench/drafter_<run id>.json.

    python -m specfit.replay recording=<id> selector=specfit cache_slots=48
    python scripts/study_drafter.py results/replays/<run id>

Every node of every recorded pool is counted, by request, level and tenth of its path probability,
with how many of them the target's greedy continuation holds. Nodes that reach past the recorded
end of an answer are left out: whether they would have been accepted is not known.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from specfit.core import PROBABILITY_ONE, SpecfitError
from specfit.results.atomic import write_json
from specfit.results.recorded import RecordedRequest
from specfit.results.recording import find_recording, read_recording
from specfit.results.rows import load_run

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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("replay", type=Path)
    parser.add_argument("--out", type=Path, help="default: bench/drafter_<run id>.json of results")
    options = parser.parse_args()
    results = options.replay.parent.parent
    try:
        rows = load_run(options.replay)
        recording = read_recording(find_recording(str(rows.info.recording), results))
    except SpecfitError as error:
        print(f"specfit: {error}", file=sys.stderr)
        return 2
    wanted = set(rows.ok_ids)
    requests = [r for r in recording.requests if r.request_id in wanted]
    table = counted(requests)
    document = {
        "info": asdict(rows.info),
        "requests": len(requests),
        "positions": sum(r.positions for r in requests),
        "bins": BINS,
        "counts": {name: table[name].tolist() for name in table.columns},
    }
    out = options.out or results / "bench" / f"drafter_{rows.info.run_id}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    write_json(out, document)
    print(f"{document['positions']} positions of {len(requests)} requests: {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
