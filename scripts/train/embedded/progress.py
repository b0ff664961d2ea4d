"""Training time over resumed parts, checkpoints written by rename, and the small CSV curves."""

from __future__ import annotations

import csv
import math
import os
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn


class Stopwatch:
    """Seconds of training, counted over every resumed part of it."""

    def __init__(self, elapsed_s: float = 0.0) -> None:
        self._before_s = elapsed_s
        self._start_s = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        return self._before_s + time.monotonic() - self._start_s


def learning_rate(peak: float, step: int, warmup_steps: int, fraction: float) -> float:
    """Linear warm-up in steps, then a cosine over the budget down to 2 % of the peak."""
    warm = min(1.0, (step + 1) / warmup_steps)
    return peak * warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * fraction)))


def update(
    optim: torch.optim.Optimizer, parameters: list[nn.Parameter], rate: float, clip: float
) -> None:
    """One optimiser step at this rate, gradients clipped to norm `clip` and dropped after it."""
    for group in optim.param_groups:
        group["lr"] = rate
    nn.utils.clip_grad_norm_(parameters, clip)
    optim.step()
    optim.zero_grad(set_to_none=True)


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    torch.save({**state, "rng": torch.get_rng_state()}, part)
    os.replace(part, path)


def load_checkpoint(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    state = torch.load(path, weights_only=True)
    torch.set_rng_state(state["rng"])
    return state


class Curve:
    """A CSV that a resumed run appends to; the header is the first row's keys."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, row: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = not self.path.exists()
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(row), lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)
