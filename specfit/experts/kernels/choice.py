"""Which arithmetic a run uses: kernels where the device has them, else the loop of torch calls."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from specfit.base.types import SpecfitError
from specfit.experts.arithmetic import Activation, Arithmetic, LoopArithmetic, WidenedArithmetic
from specfit.experts.expert_format import ExpertFormat

KERNELS = ("auto", "loop", "triton", "compiled")


def choose_arithmetic(
    wanted: str,
    activation: Activation,
    device: torch.device,
    format: ExpertFormat,
    lift: Activation | None = None,
) -> Arithmetic:
    """`wanted` is one of KERNELS. Raises SpecfitError where a kernel was asked for and cannot be.

    `auto`: compiled on a CPU in float32, Triton on a CUDA device, else the loop. Blocks of a
    quantised `format` are widened one after the other, or by the kernels tile by tile.
    """
    arithmetic = _of_widened(wanted, activation, device, format, lift)
    if format.is_plain:
        return arithmetic
    if device.type == "cuda" and not isinstance(arithmetic, LoopArithmetic):
        from specfit.experts.kernels.grouped import GroupedArithmetic
        from specfit.experts.kernels.packed import packed_shape

        if (shape := packed_shape(format)) is not None:
            loop = LoopArithmetic(activation, lift)
            return GroupedArithmetic(WidenedArithmetic(loop, format), shape)
    return WidenedArithmetic(arithmetic, format)


def _of_widened(
    wanted: str,
    activation: Activation,
    device: torch.device,
    format: ExpertFormat,
    lift: Activation | None,
) -> Arithmetic:
    loop = LoopArithmetic(activation, lift)
    if wanted == "loop":
        return loop
    kind = wanted if wanted != "auto" else "triton" if device.type == "cuda" else "compiled"
    obstacle = _obstacle(kind, activation, device, format)
    if lift is not None or format.bias is not None:
        obstacle = "the kernels compute silu experts without biases, and this target's are others"
    if obstacle is not None:
        if wanted == "auto":
            return loop
        raise SpecfitError(f"gpu.kernel={wanted}: {obstacle}; use gpu.kernel=loop")
    if kind == "triton":
        from specfit.experts.kernels.grouped import GroupedArithmetic

        return GroupedArithmetic(loop)
    from specfit.experts.kernels.compiled import CompiledArithmetic

    return CompiledArithmetic(loop)


def _obstacle(
    kind: str, activation: Activation, device: torch.device, format: ExpertFormat
) -> str | None:
    if kind == "triton" and device.type != "cuda":
        return "the kernels run on a CUDA device"
    if kind == "compiled" and (device.type != "cpu" or format.dtype != torch.float32):
        return "the compiled loop runs on a CPU in float32"
    probe = torch.linspace(-4, 4, 9)
    if not torch.equal(activation(probe), F.silu(probe)):
        return "the kernels compute silu, and this target's experts do not"
    if kind == "triton":
        try:
            import triton  # noqa: F401
        except ImportError:
            return "Triton is not installed"
    return None
