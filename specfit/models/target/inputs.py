"""What a forward is given from the host, in one upload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from specfit.base.types import IntArray
from specfit.experts.arithmetic import Uploads


@dataclass(frozen=True, eq=False)
class Sent:
    """On the device."""

    tokens: torch.Tensor  # [1, T]
    positions: torch.Tensor  # [1, T]
    columns: torch.Tensor  # of the KV cache
    masks: dict[int | None, torch.Tensor | None]  # [1, 1, T, C] by the window of a layer


def send(
    upload: Uploads,
    tokens: IntArray,
    positions: IntArray,
    columns: IntArray,
    masks: Mapping[int | None, torch.Tensor | None],
) -> Sent:
    """Masks travel as bytes, eight in an integer."""
    given = {id(mask): mask for mask in masks.values() if mask is not None}
    bytes_of = {name: _bytes(mask) for name, mask in given.items()}
    parts = [np.asarray(part, dtype=np.int64) for part in (tokens, positions, columns)]
    parts += [part.view(np.int64) for part in bytes_of.values()]
    there = upload(np.concatenate(parts)).split([len(part) for part in parts])
    masks_there = {
        name: part.view(torch.bool)[: mask.numel()].view(mask.shape)
        for (name, mask), part in zip(given.items(), there[3:], strict=True)
    }
    by_window = {w: None if mask is None else masks_there[id(mask)] for w, mask in masks.items()}
    return Sent(there[0][None], there[1][None], there[2], by_window)


def _bytes(mask: torch.Tensor) -> NDArray[np.bool_]:
    padded = np.zeros(-(-mask.numel() // 8) * 8, dtype=np.bool_)
    padded[: mask.numel()] = mask.reshape(-1).numpy()
    return padded
