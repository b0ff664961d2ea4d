"""Which experts the text has used lately: what a route predictor may know of the target's past.

Per layer and expert, a mean over the processed tokens with weights (1 - d) d^age, for each decay d;
d = 0 is the newest token alone. Token by token, whatever the batches, so that a run and a recording
give the same numbers to the last bit.

Letters: D decays, L layers, E experts, T tokens, k routed experts of one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from specfit.base.types import IntArray

Use = NDArray[np.float32]  # [D, L, E], 0 to 1


@njit(cache=True)
def _add(use: Use, decays: NDArray[np.float32], routed: IntArray) -> None:
    for token in range(routed.shape[0]):
        for d in range(use.shape[0]):
            for layer in range(use.shape[1]):
                for expert in range(use.shape[2]):
                    use[d, layer, expert] *= decays[d]
                for j in range(routed.shape[2]):
                    use[d, layer, routed[token, layer, j]] += np.float32(1) - decays[d]


class RecentUse:
    def __init__(self, decays: Sequence[float], layers: int, experts: int) -> None:
        self.use: Use = np.zeros((len(decays), layers, experts), dtype=np.float32)
        self._decays = np.array(decays, dtype=np.float32)
        self.add(np.zeros((0, layers, 1), dtype=np.int64))  # compiles here, not inside a request

    def clear(self) -> None:
        self.use[:] = 0

    def add(self, routed: IntArray) -> None:
        """[T, L, k] of newly processed tokens, oldest first."""
        _add(self.use, self._decays, np.ascontiguousarray(routed, dtype=np.int64))
