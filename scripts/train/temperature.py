"""One temperature for the head's path probabilities, from a recording's calibration text.

    python scripts/train/temperature.py results/recordings/<id> [..]

T maximises the likelihood that a node of the calibration pools is committed with chance
p ** (1 / T). Printed beside it: the expected calibration error before and after, on that text and
on the recorded requests, which no fit sees. `drafter.temperature=<T>` runs with it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from specfit.base.entry import needs_extras, script

with needs_extras():
    import numpy as np
    from numpy.typing import NDArray
    from scipy.optimize import minimize_scalar

    from specfit.base.types import PROBABILITY_ONE
    from specfit.storage.recording.files import read_recording
    from specfit.storage.recording.requests import RecordedRequest

Floats = NDArray[np.float64]
RANGE = (0.25, 4.0)
BINS = 10


def nodes(recorded: Sequence[RecordedRequest]) -> tuple[Floats, NDArray[np.bool_]]:
    """Path probability of every pool node, and whether the target continues with its path."""
    pools = [one.pools for one in recorded if one.pools is not None]
    probs = np.concatenate([p.path_probs for p in pools]) / PROBABILITY_ONE
    return probs, np.concatenate([p.accepted for p in pools])


def fitted(probs: Floats, accepted: NDArray[np.bool_]) -> float:
    def loss(log_temperature: float) -> float:
        chance = np.clip(probs ** np.exp(-log_temperature), 1e-6, 1 - 1e-6)
        return float(-np.mean(np.where(accepted, np.log(chance), np.log(1 - chance))))

    found = minimize_scalar(loss, bounds=tuple(np.log(RANGE)), method="bounded")
    return float(np.exp(found.x))


def ece(probs: Floats, accepted: NDArray[np.bool_]) -> float:
    """Mean distance of predicted and realised, over BINS bins of equal width."""
    bins = np.minimum((probs * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, probs - accepted, minlength=BINS)
    return float(np.abs(gaps).sum() / len(probs))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recordings", type=Path, nargs="+")
    for folder in parser.parse_args().recordings:
        recording = read_recording(folder)
        known = nodes(recording.calibration)
        temperature = fitted(*known)
        print(f"{folder.name}: temperature {temperature:.3f} from {len(known[0])} nodes")
        for name, text in (("calibration", known), ("requests", nodes(recording.requests))):
            probs, accepted = text
            after = ece(probs ** (1 / temperature), accepted)
            print(f"  {name}: {len(probs)} nodes, ECE {ece(probs, accepted):.4f} -> {after:.4f}")


if __name__ == "__main__":
    sys.exit(script(main))
