"""Untrained route predictors and tables, for tests that need some answer and no good one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from specfit.models.routes.predictor import PredictorShape, RoutePredictor, save_predictor
from specfit.models.routes.token_table import save_table


def random_predictor(hidden: int, layers: int, experts: int, top_k: int) -> RoutePredictor:
    torch.manual_seed(4)
    predictor = RoutePredictor(PredictorShape(hidden, 24, 6, layers, experts, top_k))
    with torch.no_grad():
        for weight in predictor.parameters():
            weight.normal_(0.0, 0.5)
    return predictor.requires_grad_(False).eval()


def random_table(vocabulary: int, layers: int, experts: int, top_k: int) -> np.ndarray:
    order = np.argsort(np.random.default_rng(5).random((vocabulary, layers, experts)), axis=-1)
    return order[..., :top_k].astype(np.uint8)


def write_files(
    folder: Path, pair: dict[str, str], hidden: int, shape: tuple[int, int, int, int]
) -> Path:
    """Both files of routes.path; `shape` is vocabulary, layers, experts, top-k."""
    folder.mkdir(parents=True, exist_ok=True)
    save_predictor(folder / "learned.safetensors", random_predictor(hidden, *shape[1:]), pair)
    about = {"target": pair["target"]}
    save_table(folder / "token_table.safetensors", random_table(*shape), about)
    return folder
