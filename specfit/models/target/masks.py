"""Attention masks [1, 1, rows, columns] for scaled-dot-product attention, True = attend.

Columns are the `prefix` rows of the KV cache, then the rows of this forward (root first in a tree):

            prefix   root  n0  n1  ...
    root      all      x
    n0        all      x    x
    n1        all      x    .   x         (n1 is not a descendant of n0)
"""

from __future__ import annotations

import numpy as np
import torch

from specfit.base.types import IntArray


def causal_mask(prefix: int, rows: int) -> torch.Tensor | None:
    """None where a single row sees everything: the kernel that plain decoding uses."""
    if rows == 1:
        return None
    own = torch.ones(rows, rows, dtype=torch.bool).tril()
    return torch.cat([torch.ones(rows, prefix, dtype=torch.bool), own], dim=1)[None, None]


def tree_mask(prefix: int, ancestry: np.ndarray) -> torch.Tensor | None:
    """`ancestry` [N, N] without the root -> mask over root and nodes."""
    nodes = len(ancestry)
    if nodes == 0:
        return None
    mask = torch.zeros(1 + nodes, prefix + 1 + nodes, dtype=torch.bool)
    mask[:, : prefix + 1] = True
    mask[1:, prefix + 1 :] = torch.from_numpy(ancestry)
    return mask[None, None]


def windowed(
    mask: torch.Tensor | None, rows: IntArray, columns: IntArray, window: int
) -> torch.Tensor | None:
    """`mask` where a row attends to the last `window` positions alone, its own included.

    rows [T], columns [C]: positions in the text, which in a tree are those of the path.
    """
    if int(rows.max()) - int(columns.min()) < window:
        return mask
    near = torch.from_numpy(rows[:, None] - columns[None, :] < window)[None, None]
    return near if mask is None else mask & near
