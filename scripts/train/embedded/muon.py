"""Muon (Jordan et al. 2024) in float32, matrices of one shape in one product.

torch.optim.Muon orthogonalises in bfloat16, one matrix at a time: without bfloat16 units that is
two fifths of a training step of this model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import sqrt

import torch
from torch import Tensor, nn

QUINTIC = (3.4445, -4.7750, 2.0315)
STEPS = 5


def orthogonalised(matrices: Tensor) -> Tensor:
    """Newton-Schulz on [B, M, N]: about the nearest matrices with all singular values alike."""
    a, b, c = QUINTIC
    wide = matrices if matrices.shape[1] <= matrices.shape[2] else matrices.mT
    x = wide / wide.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(STEPS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x if wide is matrices else x.mT


class Muon(torch.optim.Optimizer):
    """Nesterov momentum, orthogonalised; decay apart from the gradient. For matrices only."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float,
        weight_decay: float,
        momentum: float = 0.95,
    ) -> None:
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            alike: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
            for parameter in group["params"]:
                alike[parameter.shape].append(parameter)
            for shape, parameters in alike.items():
                directions = orthogonalised(
                    torch.stack([self._moved(p, group) for p in parameters])
                )
                rate = group["lr"] * sqrt(max(1.0, shape[0] / shape[1]))
                for parameter, direction in zip(parameters, directions, strict=True):
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    parameter.add_(direction, alpha=-rate)

    def _moved(self, parameter: nn.Parameter, group: dict) -> Tensor:
        assert parameter.grad is not None
        state, momentum = self.state[parameter], group["momentum"]
        if not state:
            state["momentum"] = torch.zeros_like(parameter)
        state["momentum"].lerp_(parameter.grad, 1 - momentum)
        return parameter.grad.lerp(state["momentum"], momentum)
