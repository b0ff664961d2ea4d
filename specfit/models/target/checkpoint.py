"""A hub-format checkpoint folder: config, shards, index; read by tensor, never pickled."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import torch

from specfit.base.types import SpecfitError
from specfit.models.schema import File, by_model, read_json
from specfit.models.target.config_file import refuse_quantised, target_fields
from specfit.models.target.shards import FLOATS, Entry, Shard

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
FETCH_AGAIN = "fetch it again"

_SAMPLE_BYTES = 1 << 20
_SAMPLES = 64
TEMPLATES = "additional_chat_templates"
_SLOW_TOKENIZERS = ("merges.txt", "vocab.txt", "tokenizer.model", "spiece.model")
TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("chat_template.jinja", "chat_template.json", "vocab.json", *_SLOW_TOKENIZERS),
)
_ABOUT = {"provenance.json", "statistics.json"}  # say how the weights were made; no code reads them


class _Index(File):
    weight_map: dict[str, str]
    metadata: Any = None


def shards_of(index: Path) -> dict[str, str]:
    """Tensor -> shard. A shard lies beside its index: only there is it part of the digest."""
    weight_map = by_model(_Index, read_json(index), str(index)).weight_map
    for name in sorted(set(weight_map.values())):
        if name != Path(name).name or not name.endswith(".safetensors"):
            raise SpecfitError(
                f"{index} places tensors in {name!r}; expected a .safetensors file beside it"
            )
    return weight_map


class Checkpoint:
    """Names to tensors of one folder. Raises SpecfitError with the tensor's name and shape.

    `remedy` says what completes a folder that lacks files: for one from the hub, the command.
    """

    def __init__(self, folder: Path, remedy: str = FETCH_AGAIN) -> None:
        if not folder.is_dir():
            raise SpecfitError(f"no checkpoint folder at {folder}; set model.path to one")
        self.folder, self._remedy = folder, remedy
        fields = read_json(folder / "config.json")
        refuse_quantised(fields, str(folder))
        self.config = target_fields(fields, f"{folder}/config.json")
        self._assumed = _assumed_head_dim(fields)
        self._shard_of = self._index()
        self._open: dict[str, Shard] = {}

    def _index(self) -> dict[str, str]:
        index = self.folder / INDEX
        if index.exists():
            weight_map = shards_of(index)
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
            instead = f", only {pickled[0]}, a pickle, which could run code" if pickled else ""
            raise SpecfitError(
                f"{self.folder} has neither {SINGLE} nor an index of shards{instead}; "
                f"{self._remedy}"
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
                f"its config says {list(shape)}{self._assumed if '.self_attn.' in name else ''}"
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


def _assumed_head_dim(fields: dict[str, Any]) -> str:
    """What is to be said of a shape that rests on a head_dim which the file leaves out."""
    if fields.get("head_dim") is not None or not fields.get("num_attention_heads"):
        return ""
    width = fields.get("hidden_size", 0) // fields["num_attention_heads"]
    return (
        f" if head_dim is hidden_size // num_attention_heads = {width}, which is assumed since "
        "config.json names no head_dim"
    )


def folder_digest(folder: Path) -> str:
    """Identity of a checkpoint: its JSON and tokenizer files whole, its shards by samples.

    A shard up to 64 MiB is read whole; a larger one at 64 evenly spaced MiB, its header among them,
    so that the digest of 60 GB takes a second. Jobs of one process read them once.
    """
    own = (path for path in sorted(folder.resolve().iterdir()) if _is_read(path))
    return digest_of([*own, *sorted((folder.resolve() / TEMPLATES).glob("*.jinja"))])


def tokenizer_digest(folder: Path) -> str:
    """Identity of what a tokenizer reads in `folder`: its own files, its chat templates."""
    named = [folder / name for name in TOKENIZER_FILES]
    if "tokenizer_class" not in _fields_of(folder / "tokenizer_config.json"):
        named.append(folder / "config.json")  # transformers then chooses the class by it
    templates = sorted((folder / TEMPLATES).glob("*.jinja"))
    return digest_of(path for path in [*named, *templates] if path.is_file())


def _fields_of(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _is_read(path: Path) -> bool:
    if path.name in _ABOUT:
        return False
    return path.suffix in {".json", ".safetensors", ".jinja"} or path.name in _SLOW_TOKENIZERS


def digest_of(paths: Iterable[Path]) -> str:
    """Names and contents of files, in the order given."""
    files = []
    for path in paths:
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
