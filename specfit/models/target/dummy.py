"""A target of real shapes and random values: what can be timed and moved without any checkpoint.

`model.source=random` reads `config.json` of model.path and nothing else; `model.shape` changes
its numbers, so that the same path runs small on a CPU. Values are made on the device, a layer at
a time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig

from specfit.base.types import SpecfitError
from specfit.experts.expert_format import ExpertFormat
from specfit.experts.host_weights import ExpertStore, HostStore
from specfit.experts.pack import PackShape, PackWriter
from specfit.models.schema import read_json
from specfit.models.target.attention import use_attention
from specfit.models.target.checkpoint import Checkpoint
from specfit.models.target.config_file import QUANTISED, target_fields
from specfit.models.target.family import Geometry, family_of, first_layers, geometry_of
from specfit.models.target.loading import LoadedModel, packed, skeleton
from specfit.models.target.quantise import PLAIN, kind_of
from specfit.models.target.schemes.registry import scheme_of

SCALE = 0.02
"""Standard deviation of every weight, as models of this family are initialised."""


class RandomCheckpoint(Checkpoint):
    """A folder with a config and without weights."""

    def __init__(self, folder: Path, shape: Mapping[str, int], format: str | None = None) -> None:
        """`format`: as which the experts are made, of `quantise.KINDS`; None: in floating point."""
        if not folder.is_dir():
            raise SpecfitError(f"no folder at {folder}; a random model needs one with config.json")
        self.folder = folder
        fields = read_json(folder / "config.json")
        unknown = sorted(set(shape) - set(fields))
        if unknown:
            raise SpecfitError(
                f"model.shape.{unknown[0]} is no number of {folder}/config.json; "
                f"it has {', '.join(k for k, v in fields.items() if type(v) is int)}"
            )
        self._stored = fields | dict(shape)
        self.config = target_fields(self._stored, f"{folder}/config.json")
        self._shard_of: dict[str, str] = {}
        if format not in (None, PLAIN):
            own = geometry_of(self.config)
            kind = kind_of(format, own.hidden, own.intermediate)
            self._stored[QUANTISED] = dict(kind.config)
        self.scheme = scheme_of(self._stored, str(folder))

    def expert_format(self, geometry: Geometry, dtype: torch.dtype) -> ExpertFormat:
        """As the config says it: there is no tensor to ask."""
        return self.scheme.nominal_format(geometry, dtype)

    def digest(self) -> str:
        text = json.dumps(["random", SCALE, self._stored], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_random(
    checkpoint: RandomCheckpoint,
    dtype: torch.dtype,
    device: torch.device,
    num_layers: int | None,
    packs: Path | None = None,
) -> LoadedModel:
    """`packs` as for `load_model`. Raises SpecfitError where there is no room for the experts."""
    fields = dict(checkpoint.config)
    if num_layers is not None:
        fields = first_layers(fields, num_layers)
    geometry = geometry_of(fields)
    options = {name: value for name, value in fields.items() if name != "model_type"}
    model = skeleton(AutoConfig.for_model(family_of(fields).model_type, **options))
    use_attention(model, device)
    source = torch.Generator(device).manual_seed(0)
    _fill_dense(model, dtype, device, source)
    format = checkpoint.expert_format(geometry, dtype)
    if packs is not None:
        shape = PackShape(checkpoint.digest(), geometry.layers, geometry.experts, format)
        store: HostStore = packed(packs, shape, lambda writer: _fill(writer, device, source))
    else:
        store = ExpertStore(geometry.layers, geometry.experts, format)
        _fill(store, device, source)
    return LoadedModel(model.eval().requires_grad_(False), store, geometry, checkpoint.digest())


def _random(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, source: torch.Generator
) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=device).normal_(0.0, SCALE, generator=source)


def _fill_dense(
    model: Any, dtype: torch.dtype, device: torch.device, source: torch.Generator
) -> None:
    weights: dict[str, torch.Tensor] = {}
    for name, parameter in model.state_dict().items():
        if name.endswith("norm.weight"):
            weights[name] = torch.ones(parameter.shape, dtype=dtype, device=device)
        else:
            weights[name] = _random(tuple(parameter.shape), dtype, device, source)
    model.load_state_dict(weights, assign=True)
    with torch.device(device):
        model.model.rotary_emb = type(model.model.rotary_emb)(model.config)


def _fill(store: ExpertStore | PackWriter, device: torch.device, source: torch.Generator) -> None:
    """One layer's experts at a time on the device, then part by part to the host; for a pack one
    expert at a time, which draws the same values and holds no layer in memory."""
    format = store.format
    inward = format.intermediate, format.hidden
    shapes = inward, inward, inward[::-1]
    together = 1 if isinstance(store, PackWriter) else store.experts
    for layer in range(store.layers):
        for expert in range(store.experts):
            if expert % together == 0:
                size = together, 3, format.intermediate * format.hidden
                values = _random(size, format.dtype, device, source)
            matrices = zip(values[expert % together], shapes, strict=True)
            parts = [p for m, shape in matrices for p in format.layout.quantise(m.view(shape))]
            for place, made in zip(store.places(layer, expert), parts, strict=False):
                place.copy_(made)
            store.mark_written(layer, expert)
    store.freeze()
