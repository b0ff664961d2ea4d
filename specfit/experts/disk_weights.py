"""The experts on disk: a store that reads a block when it is asked for and keeps none.

Reads are direct (they go past the page cache, which would otherwise be a second cache that nothing
counts). Where the file system refuses that, the pages of every read are dropped after it.
"""

from __future__ import annotations

import os
import threading
import weakref
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from specfit.base.types import SpecfitError
from specfit.experts.kernel_reads import KernelRead, KernelReads
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

    def start(self, kernel: KernelReads, place: torch.Tensor) -> StartedRead | None:
        """The same by the kernel; None where reads are not direct, which it does not make beside
        the caller."""
        if self.store.reads != DIRECT:
            return None
        return self.store.start(kernel, self.layer, self.expert, place, self.begin, self.end)


@dataclass(frozen=True)
class _Span:
    """Whole pages of a pack that hold bytes begin .. end - 1 of block `index`."""

    index: int
    begin: int
    end: int
    place: torch.Tensor  # uint8, for the bytes asked for
    buffer: torch.Tensor  # uint8, for the pages: `place` itself where that is aligned
    offset: int  # in the file


@dataclass(frozen=True)
class StartedRead:
    store: DiskStore
    span: _Span
    kernel: KernelReads
    read: KernelRead

    def finish(self) -> None:
        """Waits, checks, and leaves the bytes in place. Raises SpecfitError as `read_into`."""
        self.store.finish(self)


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
        span = self._span(layer, expert, place, begin, end, self._own_buffer)
        self._pread(span, 0)
        self._settle(span)

    def start(
        self,
        kernel: KernelReads,
        layer: int,
        expert: int,
        place: torch.Tensor,
        begin: int,
        end: int,
    ) -> StartedRead:
        """`read_into` by the kernel. Raises SpecfitError where it takes no read."""
        span = self._span(layer, expert, place, begin, end, self._new_buffer)
        try:
            return StartedRead(
                self, span, kernel, kernel.start(self._file, span.buffer, span.offset)
            )
        except OSError as error:
            raise self._failed(span, error) from None

    def finish(self, started: StartedRead) -> None:
        span = started.span
        try:
            count = started.kernel.wait(started.read)
        except OSError as error:
            raise self._failed(span, error) from None
        self._pread(span, count)  # the rest of a short read
        self._settle(span)

    def _span(
        self,
        layer: int,
        expert: int,
        place: torch.Tensor,
        begin: int,
        end: int | None,
        buffer: Callable[[int], torch.Tensor],
    ) -> _Span:
        end = self.block_bytes if end is None else end
        index = layer * self.experts + expert
        first = begin // ALIGNMENT * ALIGNMENT
        size = -(-end // ALIGNMENT) * ALIGNMENT - first
        here = place.view(torch.uint8)
        fits = size == end - begin and here.data_ptr() % ALIGNMENT == 0
        pages = here if fits else buffer(size)
        return _Span(index, begin, end, here, pages, self.shape.offset(index) + first)

    def _settle(self, span: _Span) -> None:
        """Checks a whole block when it is first read, and takes what was asked for out of pages."""
        skipped = span.begin % ALIGNMENT
        asked = span.buffer[skipped : skipped + span.end - span.begin]
        if len(asked) == self.block_bytes and not self._checked[span.index]:
            if zlib.crc32(asked.numpy().data) != self._sums[span.index]:
                raise damaged(self.path, f"{self._named(span)} has another checksum")
            self._checked[span.index] = True
        if span.buffer is not span.place:
            span.place.copy_(asked)

    def _named(self, span: _Span) -> str:
        layer, expert = divmod(span.index, self.experts)
        return f"expert {expert} of layer {layer}"

    def _failed(self, span: _Span, error: OSError) -> SpecfitError:
        return SpecfitError(
            f"{self.path} could not be read at {self._named(span)} ({error.strerror}); see to the "
            "disk, then run the command again"
        )

    def _own_buffer(self, size: int) -> torch.Tensor:
        """One a reader: for a block whose place in memory is not aligned."""
        if not hasattr(self._bounce, "buffer"):
            self._bounce.buffer = aligned_bytes(self.shape.stride_bytes)
        buffer: torch.Tensor = self._bounce.buffer[:size]
        return buffer

    def _new_buffer(self, size: int) -> torch.Tensor:
        """One a read: others of its thread are in flight too."""
        return aligned_bytes(size)

    def _pread(self, span: _Span, done: int) -> None:
        """All but the first `done` bytes."""
        view = span.buffer.numpy().data
        while done < len(view):
            try:
                count = os.preadv(self._file, [view[done:]], span.offset + done)
            except OSError as error:
                raise self._failed(span, error) from None
            if count <= 0:
                raise damaged(self.path, f"it ends before {self._named(span)}")
            done += count
        if self.reads == DROPPED and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file, span.offset, len(view), os.POSIX_FADV_DONTNEED)

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
