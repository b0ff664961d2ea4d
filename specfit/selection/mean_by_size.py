"""What calibration probes say by the number of verified nodes, for rules that count no experts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from specfit.base.types import SpecfitError
from specfit.selection.cost import FloatArray


@dataclass(frozen=True, eq=False)
class BySize:
    """Means over the probes that verified the k most probable nodes, k = 0 .. K.

    The same probes that b_k and beta are fitted on (app. B), of the one family that a rule without
    experts in it would verify. A probe is a whole full-depth cycle, so a time holds five drafted
    levels and a selection.
    """

    times_ns: FloatArray  # [K + 1]
    demands: FloatArray  # [K + 1], F: experts over all layers, the root's included

    @property
    def k(self) -> int:
        return len(self.times_ns) - 1


def by_size(
    families: Sequence[str], sizes: ArrayLike, demands: ArrayLike, times_ns: ArrayLike, k: int
) -> BySize:
    """Raises SpecfitError where a size from 0 to k was not probed in the probability family."""
    probable = np.asarray(families) == "probability"
    size = np.asarray(sizes, dtype=np.int64)[probable]
    counts = np.bincount(size, minlength=k + 1)[: k + 1]
    if not counts.all():
        raise SpecfitError(
            f"calibration has no probe of the {int(np.argmin(counts))} most probable nodes; every "
            f"size 0 to {k} needs one"
        )
    means = [
        np.bincount(size, np.asarray(values, dtype=np.float64)[probable], k + 1)[: k + 1] / counts
        for values in (times_ns, demands)
    ]
    return BySize(*means)
