"""A hub-format checkpoint folder: config, shards, index; read by tensor, never pickled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from specfit.core import SpecfitError

_SAMPLE_BYTES = 1 << 20
_SAMPLES = 64


def read_json(path: Path) -> dict[str, Any]:
    """Raises SpecfitError where the file is absent or is not a JSON object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecfitError(f"{path} is missing; a checkpoint folder needs it") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise SpecfitError(f"{path} is not valid JSON ({error}); fetch it again") from None
    if not isinstance(content, dict):
        raise SpecfitError(f"{path} holds no JSON object; fetch it again")
    return content


class Checkpoint:
    """Names to tensors of one folder. Raises SpecfitError with the tensor's name and shape."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise SpecfitError(f"no checkpoint folder at {folder}; set model.path to one")
        self.folder = folder
        self.config = read_json(folder / "config.json")
        if self.config.get("quantization_config"):
            method = self.config["quantization_config"].get("quant_method", "an unnamed method")
            raise SpecfitError(
                f"{folder} is quantised with {method}, which this engine does not run; "
                "use the bfloat16 checkpoint"
            )
        self._shard_of = self._index()
        self._open: dict[str, Any] = {}

    def _index(self) -> dict[str, str]:
        index = self.folder / "model.safetensors.index.json"
        if index.exists():
            weight_map: dict[str, str] = read_json(index).get("weight_map", {})
            shards = sorted(set(weight_map.values()))
            present = [s for s in shards if (self.folder / s).is_file()]
            if not shards or len(present) < len(shards):
                absent = sorted(set(shards) - set(present))[:1]
                raise SpecfitError(
                    f"{self.folder} has {len(present)} of {len(shards)} shards "
                    f"({absent[0] if absent else 'none listed'} is missing); fetch it again"
                )
            return weight_map
        single = self.folder / "model.safetensors"
        if not single.is_file():
            raise SpecfitError(
                f"{self.folder} has neither model.safetensors nor an index of shards"
            )
        return {name: single.name for name in self._handle(single.name).keys()}  # noqa: SIM118

    def _handle(self, shard: str) -> Any:
        opened = self.__dict__.setdefault("_open", {})
        if shard not in opened:
            try:
                opened[shard] = safe_open(self.folder / shard, framework="pt")
            except (SafetensorError, OSError) as error:
                raise SpecfitError(
                    f"{self.folder / shard} is damaged ({error}); fetch it again"
                ) from None
        return opened[shard]

    def names(self) -> Iterator[str]:
        return iter(self._shard_of)

    def tensor(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        """The stored tensor, of the shape the config implies."""
        if name not in self._shard_of:
            raise SpecfitError(f"{self.folder} lacks tensor {name} of shape {list(shape)}")
        try:
            found: torch.Tensor = self._handle(self._shard_of[name]).get_tensor(name)
        except SafetensorError as error:
            raise SpecfitError(f"tensor {name} cannot be read ({error}); fetch it again") from None
        if tuple(found.shape) != shape:
            raise SpecfitError(
                f"tensor {name} of {self.folder} has shape {list(found.shape)}, "
                f"its config says {list(shape)}"
            )
        return found

    def digest(self) -> str:
        return folder_digest(self.folder)


def folder_digest(folder: Path) -> str:
    """Identity of a checkpoint: its JSON and tokenizer files whole, its shards by samples.

    A shard up to 64 MiB is read whole; a larger one at 64 evenly spaced MiB, its header among them,
    so that the digest of 60 GB takes a second.
    """
    whole = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix not in {".json", ".safetensors", ".jinja"} or path.name == "provenance.json":
            continue
        size = path.stat().st_size
        whole.update(f"{path.name}:{size}".encode())
        with path.open("rb") as file:
            if size <= _SAMPLES * _SAMPLE_BYTES:
                whole.update(file.read())
                continue
            for sample in range(_SAMPLES):
                file.seek((size - _SAMPLE_BYTES) * sample // (_SAMPLES - 1))
                whole.update(file.read(_SAMPLE_BYTES))
    return whole.hexdigest()[:16]
