"""`routes=token_table`: for each token, the experts that it used most often in training text.

A plain baseline: it sees neither context nor depth. A token that the training text does not hold
gets the layer's most used experts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from specfit.base.interfaces import RouteSource
from specfit.base.types import DraftTree, IntArray, Request, Routes, SpecfitError

Table = NDArray[np.uint8]  # [V, L, k], most used first


class TokenTableRoutes(RouteSource):
    on_clock = True

    def __init__(self, table: Table) -> None:
        self._table = table

    def begin(self, request: Request) -> None: ...

    def read(self, root_token: int, tree: DraftTree, context_tokens: int) -> Routes:
        root, nodes = self._table[root_token], self._table[tree.tokens]
        return Routes(root.astype(np.int64), nodes.astype(np.int64))

    def end_cycle(self) -> None: ...


def count_table(tokens: IntArray, routes: IntArray, vocabulary: int, experts: int) -> Table:
    """tokens [R] and their routes [R, L, k] -> the most used ids, ties to the lower [V, L, k]."""
    layers, top_k = routes.shape[1:]
    assert experts <= 256, "an expert id is one byte"
    table = np.empty((vocabulary, layers, top_k), dtype=np.uint8)
    for layer in range(layers):
        counts = np.zeros((vocabulary, experts))
        np.add.at(counts, (np.repeat(tokens, top_k), routes[:, layer].reshape(-1)), 1)
        overall = counts.sum(0) / (1 + counts.sum())  # below 1: decides where a token's own do not
        order = np.argsort(-(counts + overall), axis=1, kind="stable")
        table[:, layer] = order[:, :top_k]
    return table


def save_table(path: Path, table: Table, about: Mapping[str, str]) -> None:
    """`about` names the target whose routes were counted."""
    save_file({"experts": table}, path, metadata=dict(about))


def load_table(path: Path, target: str) -> Table:
    """Raises SpecfitError for a file that is absent, damaged or of another target."""
    if not path.is_file():
        raise SpecfitError(f"no token table at {path}; set routes.path to its folder")
    try:
        with safe_open(path, "np") as file:
            stored, table = file.metadata() or {}, file.get_tensor("experts")
    except (SafetensorError, OSError) as error:
        raise SpecfitError(f"{path} cannot be read ({error})") from None
    if stored.get("target") != target:
        raise SpecfitError(
            f"{path} counts the routes of another target; "
            "scripts/train/route_predictor.py makes one for this pair, and routes.path names its "
            "folder"
        )
    return table
