"""`compressed-tensors`: FP8 by matrix, row or tile, and int4 (`pack-quantized`); groups may mix.

FP8: X.weight e4m3 [N, K] times X.weight_scale. int4: X.weight_packed int32 [N, K / 8] as the int4
layout has it, X.weight_scale [N, K / group], X.weight_shape. What it says of activations is for
engines that multiply in eight bits; here they stay in model.dtype.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field

from specfit.base.types import SpecfitError
from specfit.experts.expert_format import Layout
from specfit.experts.layouts.fp8 import Fp8Layout
from specfit.experts.layouts.int4 import Int4Layout
from specfit.models.schema import File, by_model
from specfit.models.target.schemes.scheme import KINDS, NAMES, Headers, Scheme, Stored
from specfit.models.target.shards import FLOATS, Entry

SCALE, PACKED, SHAPE = "_scale", "_packed", "_shape"


class _Weights(BaseModel):
    """Of QuantizationArgs, what changes a value; the rest says how they were found."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    num_bits: int = 8
    type: str = "int"
    symmetric: bool = True
    strategy: str | None = None
    group_size: int | None = None
    block_structure: list[int] | None = None
    actorder: str | bool | None = None


class _Group(File):
    weights: _Weights
    targets: list[str] = Field(default_factory=list)
    input_activations: Any = None
    output_activations: None = None
    format: str | None = None


class _Config(File):
    quant_method: str
    config_groups: dict[str, _Group] = Field(min_length=1)
    format: str | None = None
    ignore: list[str] = Field(default_factory=list)
    quantization_status: str | None = None
    global_compression_ratio: float | None = None
    version: str | None = None
    kv_cache_scheme: None = None
    sparsity_config: dict[str, Any] = Field(default_factory=dict)
    transform_config: dict[str, Any] = Field(default_factory=dict)


class Compressed(Scheme):
    method = "compressed-tensors"

    def __init__(self, config: Mapping[str, Any], where: str) -> None:
        super().__init__(where)
        said = f"quantization_config of {where}"
        read = by_model(_Config, config, said)
        for name in ("sparsity_config", "transform_config"):
            if getattr(read, name):
                raise SpecfitError(f"{said} sets {name}, which specfit does not implement")
        self._groups = [_settled(name, group, said) for name, group in read.config_groups.items()]

    def nominal(self) -> Layout:
        """Experts are what is quantised most."""
        fewest = min(self._groups, key=lambda weights: weights.num_bits)
        return _layout(fewest, torch.bfloat16, 0)

    def layout(self, weight: str, shape: tuple[int, ...], headers: Headers) -> Layout | None:
        packed, plain = headers(weight + PACKED), headers(weight)
        if packed is None and (plain is None or plain.dtype != "F8_E4M3"):
            return None
        stored = plain if packed is None else packed
        assert stored is not None
        scale = headers(weight + SCALE)
        if scale is None:
            raise self.refuse(stored.name, f"has no scale {weight}{SCALE}")
        bits = 8 if packed is None else 4
        return self._fitting(scale, bits, shape)

    def _fitting(self, scale: Entry, bits: int, shape: tuple[int, ...]) -> Layout:
        """Of the config's groups, the one that has scales of this shape."""
        if scale.dtype in FLOATS:
            for weights in self._groups:
                if weights.num_bits != bits or not _divides(weights, shape):
                    continue
                layout = _layout(weights, KINDS[scale.dtype], shape[1])
                size = layout.parts(*shape)[1].shape
                if scale.shape == size or (size == (1, 1) and scale.shape in ((), (1,))):
                    return layout
        raise self.refuse(
            scale.name,
            f"is {scale.dtype} {list(scale.shape)}, which no {bits}-bit group of its config "
            f"has for a matrix {list(shape)}",
        )

    def stored(
        self, weight: str, shape: tuple[int, ...], layout: Layout, headers: Headers
    ) -> tuple[Stored, ...]:
        values, scale = layout.parts(*shape)
        entry = headers(weight + SCALE)
        name = weight + PACKED if isinstance(layout, Int4Layout) else weight
        flat = entry is not None and entry.shape in ((), (1,)) and scale.shape == (1, 1)
        return (
            Stored(name, values.shape, (NAMES[values.dtype],)),
            Stored(
                weight + SCALE,
                entry.shape if entry is not None and flat else scale.shape,
                (NAMES[scale.dtype],),
                convert=_as_grid if flat else None,
            ),
        )

    def beside(self, weight: str) -> tuple[str, ...]:
        return (weight + SHAPE,)

    def check_beside(self, tensors: Mapping[str, torch.Tensor], shape: tuple[int, ...]) -> None:
        for name, tensor in tensors.items():
            if tuple(tensor.tolist()) != shape:
                raise self.refuse(name, f"says {tensor.tolist()}, the model needs {list(shape)}")

    def written(self, weight: str, matrix: torch.Tensor, layout: Layout) -> dict[str, torch.Tensor]:
        values, scale = layout.quantise(matrix)
        if not isinstance(layout, Int4Layout):
            stored = scale.reshape(1) if scale.numel() == 1 else scale
            return {weight: values, weight + SCALE: stored}
        shape = torch.tensor(matrix.shape)
        return {weight + PACKED: values, weight + SCALE: scale, weight + SHAPE: shape}


def _as_grid(scale: torch.Tensor) -> torch.Tensor:
    return scale.reshape(1, 1)


def _settled(name: str, group: _Group, where: str) -> _Weights:
    """Raises SpecfitError for a group whose numbers this engine does not read."""
    weights = group.weights
    strategies = {
        ("float", 8): ("tensor", "channel", "block"),
        ("int", 4): ("group", "channel"),
    }.get((weights.type, weights.num_bits), ())
    said = f"{weights.type} {weights.num_bits}-bit by {weights.strategy}"
    if not weights.symmetric:
        said += ", asymmetric"
    if weights.actorder in ("group", True):
        said += ", reordered (actorder)"
    whole = (
        weights.strategy in ("channel", "tensor") or weights.group_size or weights.block_structure
    )
    if (
        weights.strategy not in strategies
        or not whole
        or not weights.symmetric
        or weights.actorder in ("group", True)
    ):
        raise SpecfitError(
            f"{where} quantises {name} as {said}, which specfit does not run; it runs "
            "compressed-tensors float 8-bit by tensor, channel or block and symmetric int 4-bit "
            "by group or channel"
        )
    return weights


def _layout(weights: _Weights, scale_dtype: torch.dtype, columns: int) -> Layout:
    if weights.num_bits == 4:
        group = weights.group_size if weights.strategy == "group" else columns
        return Int4Layout(group or columns, scale_dtype)
    if weights.strategy == "block":
        assert weights.block_structure is not None
        return Fp8Layout((weights.block_structure[0], weights.block_structure[1]), scale_dtype)
    return Fp8Layout((1 if weights.strategy == "channel" else 0, 0), scale_dtype)


def _divides(weights: _Weights, shape: tuple[int, ...]) -> bool:
    if weights.num_bits != 4:
        return True
    return shape[1] % 8 == 0 and shape[1] % (weights.group_size or 1) == 0
