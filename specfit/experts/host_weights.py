"""The host store: one contiguous block per (layer, expert), written once and never again."""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
import torch

from specfit.base.types import SpecfitError
from specfit.experts.expert_format import ExpertFormat
from specfit.experts.pinned import CHUNK_BYTES, PAGE, LockReport, Registrar, lock_layers, release
from specfit.hardware.memory import GB, host_memory, with_room


def refuse_without_memory(total_bytes: int, remedy: str = "lower model.num_layers") -> None:
    """An anonymous map always succeeds; touching it without memory ends the process.

    Raises SpecfitError where this machine's free memory does not hold experts of so many bytes.
    """
    usable = host_memory().usable
    needed = with_room(total_bytes)
    if usable is not None and needed > usable:
        raise SpecfitError(
            f"the experts need {total_bytes / GB:.1f} GB of host memory, "
            f"{needed / GB:.1f} with room beside them, and {usable / GB:.1f} are free; "
            f"free memory or {remedy}"
        )


class HostStore(Protocol):
    """Where the blocks of all experts lie: in host memory (`ExpertStore`), on disk (`DiskStore`),
    or on disk behind RAM (`RamStore`).

    A block is `block_bytes` bytes, and `format` says what they mean; L layers of E experts have
    one each.
    """

    layers: int
    experts: int
    format: ExpertFormat
    lock_report: LockReport | None

    @property
    def block_bytes(self) -> int: ...

    @property
    def total_bytes(self) -> int: ...

    def block(self, layer: int, expert: int) -> torch.Tensor:
        """[format.elements] in host memory, now."""
        ...

    def source(self, layer: int, expert: int) -> Any:
        """What the store's copy engine moves a block from."""
        ...

    def is_locked(self, layer: int, expert: int) -> bool: ...


class ExpertStore:
    """Host memory [L][E, block]: gate, up and down of one expert side by side, as they are stored.

    One block is one copy to the device. Blocks are read-only once `freeze` was called. A layer's
    blocks begin at a page border and have exactly their size, so that they can be locked in place.
    """

    def __init__(self, layers: int, experts: int, format: ExpertFormat) -> None:
        self.layers, self.experts, self.format = layers, experts, format
        refuse_without_memory(self.total_bytes)
        self._blocks = [self._layer_blocks() for _ in range(layers)]
        self._written = np.zeros((layers, experts), dtype=np.bool_)
        self._frozen = False
        self._locked = np.zeros(layers, dtype=np.int64)  # the first this many blocks of each layer
        self.lock_report: LockReport | None = None

    @property
    def block_bytes(self) -> int:
        return self.format.block_bytes

    @property
    def total_bytes(self) -> int:
        return self.layers * self.experts * self.block_bytes

    def _layer_blocks(self) -> torch.Tensor:
        size = self.experts * self.block_bytes
        try:
            pages = _anonymous(-(-size // PAGE) * PAGE)
        except (OSError, ValueError) as error:
            raise SpecfitError(
                f"the host store needs {self.total_bytes / GB:.1f} GB of memory and did not get it "
                f"({error}); free memory or lower model.num_layers"
            ) from None
        count = self.experts * self.format.elements
        blocks = torch.frombuffer(pages, dtype=self.format.storage, count=count)
        return blocks.view(self.experts, -1)

    # -- filling ---------------------------------------------------------------------------------

    def write(self, layer: int, expert: int, parts: Iterable[torch.Tensor]) -> None:
        """Fill one block from its parts, in the order of `format.parts`."""
        for place, part in zip(self.places(layer, expert), parts, strict=True):
            assert place.shape == part.shape, "the parts fill a block exactly"
            place.copy_(part)
        self.mark_written(layer, expert)

    def places(self, layer: int, expert: int) -> tuple[torch.Tensor, ...]:
        """A view of each part, for a loader to read bytes into."""
        assert not self._frozen, "the store is immutable once loaded"
        return self.format.views(self._blocks[layer][expert])

    def mark_written(self, layer: int, expert: int) -> None:
        """Every part of this block has been filled in through `places`."""
        self._written[layer, expert] = True

    def freeze(self) -> None:
        assert bool(self._written.all()), "every expert is written before the store is used"
        self._frozen = True

    # -- reading ---------------------------------------------------------------------------------

    def block(self, layer: int, expert: int) -> torch.Tensor:
        """[format.elements], to be copied from, never written."""
        return self._blocks[layer][expert]

    def source(self, layer: int, expert: int) -> torch.Tensor:
        return self.block(layer, expert)

    # -- page-locking ----------------------------------------------------------------------------

    def lock(self, registrar: Registrar, chunk_bytes: int = CHUNK_BYTES) -> LockReport:
        """Page-lock as much as is granted, spread over the layers, until the first refusal.

        A store is locked once; the locks go before its memory does.
        """
        assert self._frozen and self.lock_report is None, "a loaded store is locked once"
        addresses = [blocks.data_ptr() for blocks in self._blocks]
        counts, registered, refused = lock_layers(
            registrar, addresses, self.block_bytes, self.experts, chunk_bytes
        )
        weakref.finalize(self, release, registrar, registered)
        self._locked[:] = counts
        locked = int(self._locked.sum()) * self.block_bytes
        self.lock_report = LockReport(locked, self.total_bytes, refused)
        return self.lock_report

    def is_locked(self, layer: int, expert: int) -> bool:
        """Whether a copy of this block may run asynchronously from where it lies."""
        return bool(expert < self._locked[layer])


def device_blocks(
    count: int, elements: int, dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    """[count, elements] uninitialised; on a CPU from a page border on, so that a disk can write
    straight into it."""
    size = count * elements * dtype.itemsize
    if device.type != "cpu" or size == 0:
        return torch.empty(count, elements, dtype=dtype, device=device)
    pages = _anonymous(-(-size // PAGE) * PAGE)
    return torch.frombuffer(pages, dtype=dtype, count=count * elements).view(count, elements)


def _anonymous(size: int) -> mmap.mmap:
    """Zeroed pages of this process alone, large ones where the system has them."""
    if not hasattr(mmap, "MAP_ANONYMOUS"):
        return mmap.mmap(-1, size)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them refuses the advice
            pages.madvise(mmap.MADV_HUGEPAGE)
    return pages
