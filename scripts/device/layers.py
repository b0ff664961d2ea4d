"""Fused layers and their graphs on a GPU, against transformers' own: numbers, routes, host time."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
import torch

from specfit.base.types import DraftTree, Selection
from specfit.models.target.fused_layer import LayerKernels
from specfit.models.target.graphs import Capture
from specfit.models.target.offloaded import OffloadedTarget

PROMPT_TOKENS = 300
REPEATS = 20
ERROR_GOAL = 1e-4  # relative, float32: sums are added up in another order
Figures = dict[str, Any]


def chain(rows: int) -> tuple[DraftTree, Selection]:
    nodes = np.arange(rows - 1)
    tree = DraftTree(nodes + 3, nodes - 1, nodes + 1, 1.0 / (nodes + 2))
    return tree, Selection(tuple(nodes.tolist()))


def compare(
    runtime: Any, kernels: LayerKernels, capture: Capture, device: torch.device
) -> list[Figures]:
    """One and 8 rows by the class, fused and as graphs, on one engine, all experts resident."""
    loaded = runtime.loaded
    layers, words = loaded.geometry.layers, loaded.geometry.vocabulary
    prompt = np.arange(PROMPT_TOKENS) % words
    forms = {"class": (None, None), "fused": (kernels, None), "graphs": (kernels, capture)}
    found, theirs = [], {}
    for form, parts in forms.items():
        aux = range(layers)
        target = OffloadedTarget(loaded, runtime.engine, aux, None, device, *parts)
        target.begin()
        target.prefill(prompt)
        for rows in (1, 8):
            verified = target.verify(7, *chain(rows))
            row = {"form": form, "rows": rows, "ms_per_layer": _timed_ms(target, rows) / layers}
            theirs.setdefault(rows, verified)
            row |= _against(verified, theirs[rows])
            found.append(row)
            print(f"layers: {row}")
    return found


def _against(ours: Any, theirs: Any) -> Figures:
    difference = (ours.features.double() - theirs.features.double()).norm()
    return {
        "error": float(difference / theirs.features.double().norm()),
        "equal_routes": float((ours.routes == theirs.routes).mean()),
        "equal_tokens": bool((ours.tokens == theirs.tokens).all()),
    }


def _timed_ms(target: OffloadedTarget, rows: int) -> float:
    """The median of a verify, its host part and its experts included; ends by reading tokens."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        target.verify(7, *chain(rows))
        times.append(time.perf_counter() - begin)
    return statistics.median(times[REPEATS // 4 :]) * 1e3
