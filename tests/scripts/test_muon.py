"""Our float32 Muon against torch's."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

TRAIN = Path(__file__).resolve().parents[2] / "scripts" / "train"


def test_steps_are_torchs_within_its_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TRAIN))
    from embedded.muon import Muon

    torch.manual_seed(0)
    shapes = ((32, 16), (8, 16), (16, 32), (8, 16))
    ours = [nn.Parameter(torch.randn(shape)) for shape in shapes]
    theirs = [nn.Parameter(p.detach().clone()) for p in ours]
    start = [p.detach().clone() for p in ours]
    optimisers = (
        Muon(ours, lr=0.02, weight_decay=0.05),
        torch.optim.Muon(theirs, lr=0.02, weight_decay=0.05, momentum=0.95),
    )
    for _ in range(5):
        for one, other in zip(ours, theirs, strict=True):
            one.grad = torch.randn(one.shape)
            other.grad = one.grad.clone()
        for optimiser in optimisers:
            optimiser.step()
    for one, other, before in zip(ours, theirs, start, strict=True):
        assert (one - other).norm() < 0.02 * (other - before).norm()
