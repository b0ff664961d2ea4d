"""A hub-format checkpoint folder: config, shards, index; read by tensor, never pickled."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import torch

from specfit.base.paths import checkpoint_folder
from specfit.base.types import SpecfitError
from specfit.experts.expert_format import ExpertFormat, Layout
from specfit.models.schema import File, by_model, read_json
from specfit.models.target.config_file import target_fields
from specfit.models.target.family import Family, Geometry, family_of
from specfit.models.target.schemes.registry import scheme_of
from specfit.models.target.schemes.scheme import Stored
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
        self.folder, self._remedy = checkpoint_folder(folder), remedy
        fields = read_json(folder / "config.json")
        self.config = target_fields(fields, f"{folder}/config.json")
        self._assumed = _assumed_head_dim(fields)
        self._shard_of = self._index()
        self._open: dict[str, Shard] = {}
        self.scheme = scheme_of(fields, str(folder), self._shard_of)

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

    def header(self, name: str) -> Entry | None:
        """What its shard says of a tensor; None where no shard has it."""
        return (
            self.shard(self._shard_of[name]).entries.get(name) if name in self._shard_of else None
        )

    def find(
        self, name: str, shape: tuple[int, ...], dtypes: Sequence[str] = FLOATS
    ) -> tuple[Shard, Entry]:
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
        if entry.dtype not in dtypes:
            scheme = (
                f" (quantised with {self.scheme.method})" if self.scheme.method != "none" else ""
            )
            raise SpecfitError(
                f"tensor {name} of {self.folder} is stored as {entry.dtype}, which this engine "
                f"does not run there; it reads {', '.join(dtypes)}{scheme}"
            )
        return shard, entry

    def tensor(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        """The stored tensor, in host memory of its own, in its stored dtype."""
        shard, entry = self.find(name, shape)
        return shard.read(entry)

    def part(self, stored: Stored) -> torch.Tensor:
        """A part of a matrix, in host memory of its own."""
        shard, entry = self.place_of(stored)
        tensor = shard.read(entry)
        return tensor if stored.convert is None else stored.convert(tensor).contiguous()

    def place_of(self, stored: Stored) -> tuple[Shard, Entry]:
        """The bytes that a part of a matrix is read from."""
        shard, entry = self.find(stored.name, stored.shape, stored.dtypes)
        return shard, entry if stored.rows is None else entry.rows(*stored.rows)

    def matrix(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """A weight that is no expert's, widened to `dtype` where it is quantised, else as stored.

        Raises SpecfitError as `find` does.
        """
        layout = self.layout(name, shape)
        if layout is None:
            return self.tensor(name, shape)
        return layout.widen([self.part(part) for part in self.parts_of(name, shape)], dtype)

    def layout(self, name: str, shape: tuple[int, ...]) -> Layout | None:
        """None where the weight is stored in floating point."""
        is_matrix = name.endswith(".weight") and len(shape) == 2
        return self.scheme.layout(name, shape, self.header) if is_matrix else None

    def parts_of(self, name: str, shape: tuple[int, ...]) -> tuple[Stored, ...]:
        """The tensors that a weight is read from."""
        layout = self.layout(name, shape)
        if layout is None:
            return (Stored(name, shape),)
        return self.scheme.stored(name, shape, layout, self.header)

    def names_of(self, name: str, shape: tuple[int, ...]) -> set[str]:
        """Those tensors, and what a scheme stores beside them, which is checked here."""
        parts = self.parts_of(name, shape)
        names = {part.name for part in parts}
        return names if names == {name} else names | self.check_beside(name, shape)

    def check_beside(self, name: str, shape: tuple[int, ...]) -> set[str]:
        """Tensors beside a quantised matrix, read. Raises SpecfitError for what they ask."""
        there = {}
        for other in self.scheme.beside(name):
            entry = self.header(other)
            if entry is not None:
                there[other] = self.shard(self._shard_of[other]).read(entry)
        self.scheme.check_beside(there, shape)
        return set(there)

    # -- experts ---------------------------------------------------------------------------------

    @property
    def family(self) -> Family:
        return self.scheme.family(family_of(self.config))

    def expert_format(self, geometry: Geometry, dtype: torch.dtype) -> ExpertFormat:
        """Raises SpecfitError where the first expert's tensors contradict the config."""
        return self.scheme.expert_format(self.family, geometry, dtype, self.header)

    def expert(self, format: ExpertFormat, layer: int, expert: int) -> Iterator[Stored]:
        """The tensors that a block is read from, in the format's order."""
        return self.scheme.expert(self.family, format, self.header, layer, expert)

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
