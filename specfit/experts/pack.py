"""A file of expert blocks, one after the other at aligned offsets, so that one read brings one.

    header   4 KiB: JSON of `PackShape`, of the checkpoint's digest and of the checksums' digest
    blocks   [L * E], each at a multiple of ALIGNMENT
    sums     [L * E] uint32, CRC-32 of each block

A block is bytes: what lies in them is known to the arithmetic alone. A pack is written once, under
another name until it is whole, and never changed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import mmap
import os
import shutil
import uuid
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from specfit.base.types import SpecfitError
from specfit.experts.expert_format import ExpertFormat
from specfit.hardware.memory import GB

ALIGNMENT = 4096
"""Bytes: what direct reads ask of offsets, lengths and addresses on every common disk."""

MAGIC = "specfit experts 1"


@dataclass(frozen=True)
class PackShape:
    """What a pack holds; `digest` is the checkpoint's."""

    digest: str
    layers: int
    experts: int
    format: ExpertFormat

    @property
    def header(self) -> dict[str, str | int]:
        """What a file says of itself; `dtype` is the format's name."""
        return {
            "digest": self.digest,
            "dtype": self.format.name,
            "layers": self.layers,
            "experts": self.experts,
            "hidden": self.format.hidden,
            "intermediate": self.format.intermediate,
        }

    @property
    def block_bytes(self) -> int:
        return self.format.block_bytes

    @property
    def stride_bytes(self) -> int:
        """From one block to the next."""
        return -(-self.block_bytes // ALIGNMENT) * ALIGNMENT

    @property
    def blocks(self) -> int:
        return self.layers * self.experts

    @property
    def sums_at(self) -> int:
        return ALIGNMENT + self.blocks * self.stride_bytes

    @property
    def file_bytes(self) -> int:
        return self.sums_at + 4 * self.blocks

    @property
    def file_name(self) -> str:
        return f"{self.digest}-{self.format.name}-{self.layers}.experts"

    def offset(self, index: int) -> int:
        return ALIGNMENT + index * self.stride_bytes


def aligned_bytes(size: int) -> torch.Tensor:
    """Fresh host memory [size] uint8 that begins at a page border."""
    pages = mmap.mmap(-1, max(ALIGNMENT, -(-size // ALIGNMENT) * ALIGNMENT))
    return torch.frombuffer(pages, dtype=torch.uint8)[:size]


def refuse_without_room(folder: Path, file_bytes: int) -> None:
    """Raises SpecfitError where the disk of `folder`, there or not, does not take a pack."""
    folder = folder.absolute()
    seen = next(path for path in (folder, *folder.parents) if path.is_dir())
    free = shutil.disk_usage(seen).free
    if file_bytes > free:
        raise SpecfitError(
            f"the experts need {file_bytes / GB:.2f} GB of disk at {folder}, {free / GB:.2f} are "
            "free; set offload.pack to a folder on another disk"
        )


class PackWriter:
    """Fills a pack block by block, each through one buffer: the interface of `ExpertStore`.

    Raises SpecfitError where the disk has no room; nothing is left behind then.
    """

    def __init__(self, path: Path, shape: PackShape) -> None:
        self.path, self.shape = path, shape
        self.layers, self.experts, self.format = shape.layers, shape.experts, shape.format
        self._buffer = torch.zeros(shape.stride_bytes, dtype=torch.uint8)
        self._sums = np.zeros(shape.blocks, dtype=np.uint32)
        self._written = np.zeros(shape.blocks, dtype=np.bool_)
        self._working = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.partial")
        refuse_without_room(path.parent, shape.file_bytes)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self._working, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._file, 0, shape.file_bytes)
        except OSError as error:
            self.abandon()
            raise self._no_room(error) from None

    def _no_room(self, error: OSError) -> SpecfitError:
        why = "the disk is full" if error.errno == errno.ENOSPC else str(error.strerror)
        return SpecfitError(
            f"{self.path} could not be written ({why}; it needs "
            f"{self.shape.file_bytes / GB:.2f} GB); set offload.pack to a folder with room"
        )

    def places(self, layer: int, expert: int) -> tuple[torch.Tensor, ...]:
        """A view of each part; valid until `mark_written` of this block."""
        return self.format.views(self._buffer[: self.shape.block_bytes])

    def mark_written(self, layer: int, expert: int) -> None:
        index = layer * self.experts + expert
        view = self._buffer.numpy().data
        self._sums[index] = zlib.crc32(view[: self.shape.block_bytes])
        self._put(view, self.shape.offset(index))
        self._written[index] = True

    def _put(self, view: memoryview, offset: int) -> None:
        try:
            while view:
                done = os.pwrite(self._file, view, offset)
                view, offset = view[done:], offset + done
        except OSError as error:
            self.abandon()
            raise self._no_room(error) from None

    def freeze(self) -> None:
        """Every block is there: the header, then the name."""
        assert bool(self._written.all()), "every expert is written before a pack is used"
        sums = self._sums.tobytes()
        self._put(memoryview(sums), self.shape.sums_at)
        header = {"format": MAGIC, "sums": hashlib.sha256(sums).hexdigest(), **self.shape.header}
        self._put(memoryview(json.dumps(header).encode().ljust(ALIGNMENT)), 0)
        os.fsync(self._file)
        os.close(self._file)
        self._file = -1
        self._working.replace(self.path)

    def abandon(self) -> None:
        """Nothing is left; may be said twice."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1
        self._working.unlink(missing_ok=True)


def read_sums(path: Path, shape: PackShape) -> np.ndarray:
    """The checksums [L * E] of a pack that is whole and of this shape. Raises SpecfitError."""
    try:
        with path.open("rb") as file:
            header = json.loads(file.read(ALIGNMENT))
            file.seek(shape.sums_at)
            sums = file.read()
        size = path.stat().st_size
    except OSError as error:
        raise SpecfitError(f"{path} cannot be read ({error.strerror}); delete it") from None
    except ValueError:
        raise damaged(path, "its header is not readable") from None
    values = shape.header.items()
    if header.get("format") != MAGIC or any(header.get(k) != v for k, v in values):
        raise damaged(path, "its header is of other experts")
    if size != shape.file_bytes:
        raise damaged(path, f"it has {size} bytes, its header says {shape.file_bytes}")
    if hashlib.sha256(sums).hexdigest() != header.get("sums"):
        raise damaged(path, "its checksums are not those its header names")
    return np.frombuffer(sums, dtype=np.uint32)


def damaged(path: Path, why: str) -> SpecfitError:
    return SpecfitError(f"{path} is damaged ({why}); delete it, and the next run makes it again")
