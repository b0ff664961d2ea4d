"""The experts on disk: a store that reads a block when it is asked for and keeps none.

Reads are direct (they go past the page cache, which would otherwise be a second cache that nothing
counts). Where the file system refuses that, the pages of every read are dropped after it.
"""

from __future__ import annotations

import os
import threading
import weakref
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from specfit.base.types import SpecfitError
from specfit.experts.pack import ALIGNMENT, PackShape, aligned_bytes, damaged, read_sums
from specfit.experts.pinned import LockReport

CHECKED_ON_OPENING = 1 << 30
"""Bytes: a larger pack's blocks are checked when each is first read, which is on the clock."""

DIRECT, DROPPED = "direct", "dropped"


@dataclass(frozen=True)
class DiskBlock:
    """A block, or bytes begin .. end - 1 of it, that is still to be read."""

    store: DiskStore
    layer: int
    expert: int
    begin: int
    end: int

    @property
    def nbytes(self) -> int:
        return self.end - self.begin

    def chunk(self, count: int) -> list[DiskBlock]:
        """Equal parts, as a tensor's `chunk`."""
        size = self.nbytes // count
        assert size * count == self.nbytes, "a block has equal parts"
        starts = range(self.begin, self.end, size)
        return [DiskBlock(self.store, self.layer, self.expert, at, at + size) for at in starts]

    def read_into(self, place: torch.Tensor) -> None:
        """`place` is contiguous host memory of that size. Outside the interpreter lock."""
        self.store.read_into(self.layer, self.expert, place, self.begin, self.end)


class DiskStore:
    """Blocks [L][E] of a pack, as `ExpertStore` has them in host memory. Safe for many readers."""

    lock_report: LockReport | None = None

    def __init__(self, path: Path, shape: PackShape) -> None:
        self.path, self.shape = path, shape
        self.layers, self.experts, self.format = shape.layers, shape.experts, shape.format
        self.block_bytes = shape.block_bytes
        self._sums = read_sums(path, shape)
        self._checked = np.zeros(shape.blocks, dtype=np.bool_)
        self._bounce = threading.local()
        self._file, self.reads = open_for_reading(path)
        weakref.finalize(self, os.close, self._file)
        if self.total_bytes <= CHECKED_ON_OPENING:
            self._check_all()

    @property
    def total_bytes(self) -> int:
        return self.layers * self.experts * self.block_bytes

    @property
    def notice(self) -> str | None:
        """One sentence where reads are not direct."""
        if self.reads == DIRECT:
            return None
        return (
            f"{self.path.parent} does not allow direct reads: the pages of every read are dropped "
            "after it, and rows are marked disk_reads=dropped"
        )

    def block(self, layer: int, expert: int) -> torch.Tensor:
        """[format.elements], read now into memory of its own."""
        place = aligned_bytes(self.block_bytes).view(self.format.storage)
        self.read_into(layer, expert, place)
        return place

    def source(self, layer: int, expert: int) -> DiskBlock:
        return DiskBlock(self, layer, expert, 0, self.block_bytes)

    def is_locked(self, layer: int, expert: int) -> bool:
        return False

    def read_into(
        self, layer: int, expert: int, place: torch.Tensor, begin: int = 0, end: int | None = None
    ) -> None:
        """Bytes begin .. end - 1 of a block. Raises SpecfitError for a short read, a disk that
        fails, or a whole block with a wrong checksum."""
        end = self.block_bytes if end is None else end
        index = layer * self.experts + expert
        first = begin // ALIGNMENT * ALIGNMENT
        size = -(-end // ALIGNMENT) * ALIGNMENT - first
        here = place.view(torch.uint8)
        fits = size == end - begin and here.data_ptr() % ALIGNMENT == 0
        buffer = here if fits else self._own_buffer()
        view = buffer.numpy().data[:size]
        self._pread(view, self.shape.offset(index) + first, layer, expert)
        if end - begin == self.block_bytes and not self._checked[index]:
            if zlib.crc32(view[: self.block_bytes]) != self._sums[index]:
                raise damaged(self.path, f"expert {expert} of layer {layer} has another checksum")
            self._checked[index] = True
        if not fits:
            here.copy_(buffer[begin - first : end - first])

    def _own_buffer(self) -> torch.Tensor:
        """One a reader: for a block whose place in memory is not aligned."""
        if not hasattr(self._bounce, "buffer"):
            self._bounce.buffer = aligned_bytes(self.shape.stride_bytes)
        buffer: torch.Tensor = self._bounce.buffer
        return buffer

    def _pread(self, view: memoryview, offset: int, layer: int, expert: int) -> None:
        done = 0
        while done < len(view):
            try:
                count = os.preadv(self._file, [view[done:]], offset + done)
            except OSError as error:
                raise SpecfitError(
                    f"{self.path} could not be read at expert {expert} of layer {layer} "
                    f"({error.strerror}); see to the disk, then run the command again"
                ) from None
            if count <= 0:
                raise damaged(self.path, f"it ends before expert {expert} of layer {layer}")
            done += count
        if self.reads == DROPPED and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file, offset, len(view), os.POSIX_FADV_DONTNEED)

    def _check_all(self) -> None:
        place = aligned_bytes(self.block_bytes)
        for layer in range(self.layers):
            for expert in range(self.experts):
                self.read_into(layer, expert, place)


def open_for_reading(path: Path) -> tuple[int, str]:
    """A descriptor, and how it reads. tmpfs and some overlays refuse direct reads."""
    if hasattr(os, "O_DIRECT"):
        try:
            file = os.open(path, os.O_RDONLY | os.O_DIRECT)
        except OSError:
            file = -1
        if file >= 0:
            try:
                os.preadv(file, [aligned_bytes(ALIGNMENT).numpy().data], 0)
                return file, DIRECT
            except OSError:
                os.close(file)
    return os.open(path, os.O_RDONLY), DROPPED
