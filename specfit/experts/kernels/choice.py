"""Which arithmetic a run uses: the kernels on a CUDA device that has Triton, else the loop."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from specfit.base.types import SpecfitError
from specfit.experts.arithmetic import Activation, Arithmetic, LoopArithmetic

KERNELS = ("auto", "loop", "triton")


def choose_arithmetic(wanted: str, activation: Activation, device: torch.device) -> Arithmetic:
    """`wanted` is one of KERNELS. Raises SpecfitError where Triton was asked for and cannot be."""
    loop = LoopArithmetic(activation)
    obstacle = _obstacle(activation, device)
    if wanted == "loop" or (wanted == "auto" and obstacle is not None):
        return loop
    if obstacle is not None:
        raise SpecfitError(f"gpu.kernel=triton: {obstacle}; use gpu.kernel=loop")
    from specfit.experts.kernels.grouped import GroupedArithmetic

    return GroupedArithmetic(loop)


def _obstacle(activation: Activation, device: torch.device) -> str | None:
    if device.type != "cuda":
        return "the kernels run on a CUDA device"
    probe = torch.linspace(-4, 4, 9)
    if not torch.equal(activation(probe), F.silu(probe)):
        return "the kernels compute silu, and this target's experts do not"
    try:
        import triton  # noqa: F401
    except ImportError:
        return "Triton is not installed"
    return None
