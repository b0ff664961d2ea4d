"""A hub-format checkpoint folder: config, shards, index; read by tensor, never pickled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import torch

from specfit.base.types import SpecfitError
from specfit.models.target.shards import FLOATS, Entry, Shard

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
FETCH_AGAIN = "fetch it again"

_SAMPLE_BYTES = 1 << 20
_SAMPLES = 64
_ABOUT = {"provenance.json", "statistics.json"}  # said of the weights, read by nobody


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
    """Names to tensors of one folder. Raises SpecfitError with the tensor's name and shape.

    `remedy` says what completes a folder that lacks files: for one from the hub, the command.
    """

    def __init__(self, folder: Path, remedy: str = FETCH_AGAIN) -> None:
        if not folder.is_dir():
            raise SpecfitError(f"no checkpoint folder at {folder}; set model.path to one")
        self.folder, self._remedy = folder, remedy
        self.config = read_json(folder / "config.json")
        refuse_quantised(self.config, str(folder))
        self._shard_of = self._index()
        self._open: dict[str, Shard] = {}

    def _index(self) -> dict[str, str]:
        index = self.folder / INDEX
        if index.exists():
            weight_map: dict[str, str] = read_json(index).get("weight_map", {})
            shards = sorted(set(weight_map.values()))
            present = [s for s in shards if (self.folder / s).is_file()]
            if not shards or len(present) < len(shards):
                absent = sorted(set(shards) - set(present))[:1]
                raise SpecfitError(
                    f"{self.folder} has {len(present)} of {len(shards)} shards "
                    f"({absent[0] if absent else 'none listed'} is missing); {self._remedy}"
                )
            return weight_map
        if not (self.folder / SINGLE).is_file():
            pickled = sorted(p.name for p in self.folder.glob("*.bin"))
            held = f", only {pickled[0]}, a pickle, which could run code" if pickled else ""
            raise SpecfitError(
                f"{self.folder} has neither {SINGLE} nor an index of shards{held}; {self._remedy}"
            )
        return dict.fromkeys(Shard(self.folder / SINGLE).entries, SINGLE)

    def check_complete(self) -> None:
        """Every shard is as long as its header says: an interrupted copy is found before a run."""
        for name in sorted(set(self._shard_of.values())):
            self.shard(name)

    def shard(self, name: str) -> Shard:
        if name not in self._open:
            self._open[name] = Shard(self.folder / name)
        return self._open[name]

    def names(self) -> Iterator[str]:
        return iter(self._shard_of)

    def shard_of(self, name: str) -> str:
        """File that holds a tensor. Raises SpecfitError where none does."""
        if name not in self._shard_of:
            raise SpecfitError(f"{self.folder} lacks tensor {name}")
        return self._shard_of[name]

    def find(self, name: str, shape: tuple[int, ...]) -> tuple[Shard, Entry]:
        """Where a weight lies; it has the shape the config implies and a dtype that is read."""
        if name not in self._shard_of:
            raise SpecfitError(f"{self.folder} lacks tensor {name} of shape {list(shape)}")
        shard = self.shard(self._shard_of[name])
        entry = shard.entries.get(name)
        if entry is None:
            raise SpecfitError(
                f"{shard.path} lacks tensor {name}, which the index places there; {self._remedy}"
            )
        if entry.shape != shape:
            raise SpecfitError(
                f"tensor {name} of {self.folder} has shape {list(entry.shape)}, "
                f"its config says {list(shape)}"
            )
        if entry.dtype not in FLOATS:
            raise SpecfitError(
                f"tensor {name} of {self.folder} is stored as {entry.dtype}, which this engine "
                f"does not run; use a checkpoint in {', '.join(FLOATS)}"
            )
        return shard, entry

    def tensor(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        """The stored tensor, in host memory of its own, in its stored dtype."""
        shard, entry = self.find(name, shape)
        return shard.read(entry)

    @cached_property
    def _digest(self) -> str:
        return folder_digest(self.folder)

    def digest(self) -> str:
        return self._digest


def refuse_quantised(config: dict[str, Any], where: str) -> None:
    """Read as plain float8 such a checkpoint would load and be silently wrong."""
    if config.get("quantization_config"):
        method = config["quantization_config"].get("quant_method", "an unnamed method")
        raise SpecfitError(
            f"{where} is quantised with {method}, which this engine does not run; "
            "use the bfloat16 checkpoint"
        )


def folder_digest(folder: Path) -> str:
    """Identity of a checkpoint: its JSON and tokenizer files whole, its shards by samples.

    A shard up to 64 MiB is read whole; a larger one at 64 evenly spaced MiB, its header among them,
    so that the digest of 60 GB takes a second. Jobs of one process read them once.
    """
    files = []
    for path in sorted(folder.resolve().iterdir()):
        if path.suffix in {".json", ".safetensors", ".jinja"} and path.name not in _ABOUT:
            stat = path.stat()
            files.append((path, stat.st_size, stat.st_mtime_ns, stat.st_ino))
    return _digest_of(tuple(files))


@lru_cache(maxsize=8)
def _digest_of(files: tuple[tuple[Path, int, int, int], ...]) -> str:
    """Of files as they are: one written since has another time or number."""
    whole = hashlib.sha256()
    for path, size, *_ in files:
        whole.update(f"{path.name}:{size}".encode())
        with path.open("rb") as file:
            if size <= _SAMPLES * _SAMPLE_BYTES:
                whole.update(file.read())
                continue
            for sample in range(_SAMPLES):
                file.seek((size - _SAMPLE_BYTES) * sample // (_SAMPLES - 1))
                whole.update(file.read(_SAMPLE_BYTES))
    return whole.hexdigest()[:16]
