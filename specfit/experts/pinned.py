"""Page-locks host memory in place, chunk by chunk, as far as the system allows.

The framework's pinned allocator rounds up to powers of two (1.2 GB would become 2 GB), and cannot
lock what is there already. `cudaHostRegister` locks what it is given; Windows, WSL2 and containers
give about half of the memory and then refuse, which must cost speed and not the run.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

PAGE = 4096
CHUNK_BYTES = 256 << 20
ALREADY_REGISTERED = 712


class Registrar(Protocol):
    """CUDA's two calls, by address; the code is CUDA's, 0 = done. Tests give a made-up one."""

    def register(self, address: int, size: int) -> int: ...

    def unregister(self, address: int) -> int: ...

    def clear_error(self) -> None:
        """Forget a refusal, which the next kernel launch would otherwise report as its own."""
        ...


@dataclass(frozen=True)
class LockReport:
    """How much of a store is page-locked, and the code of the refusal that ended the locking."""

    locked_bytes: int
    total_bytes: int
    refused: int | None = None

    @property
    def is_whole(self) -> bool:
        return self.locked_bytes == self.total_bytes

    def sentence(self) -> str:
        locked, total = self.locked_bytes / 2**30, self.total_bytes / 2**30
        if self.is_whole:
            return (
                f"{total:.0f} GiB of experts page-locked" if total >= 1 else "experts page-locked"
            )
        return (
            f"{locked:.0f} of {total:.0f} GiB locked (CUDA error {self.refused} at the next chunk)"
            "; the rest goes through a pinned bounce buffer and moves slower"
        )


def chunk_blocks(block_bytes: int, blocks: int, chunk_bytes: int = CHUNK_BYTES) -> int:
    """Blocks per chunk: whole pages and whole blocks, since a copy may not span two registrations.

    Where no smaller count fills whole pages, a chunk is the whole run of blocks.
    """
    least = PAGE // math.gcd(block_bytes, PAGE)
    return min(blocks, max(1, chunk_bytes // (block_bytes * least)) * least)


def lock_layers(
    registrar: Registrar, addresses: Sequence[int], block_bytes: int, blocks: int, chunk_bytes: int
) -> tuple[list[int], list[int], int | None]:
    """Lock `blocks` blocks of every layer: (blocks locked of each, addresses, code of a refusal).

    One chunk of each layer after the other, so that a refusal half way leaves every layer about
    the same share: a layer without any would move all its blocks the slow way. A layer's memory
    begins at a page border and reaches to the end of its last block's page.
    """
    step = chunk_blocks(block_bytes, blocks, chunk_bytes)
    counts = [0] * len(addresses)
    registered: list[int] = []
    for first in range(0, blocks, step):
        count = min(step, blocks - first)
        size = -(-count * block_bytes // PAGE) * PAGE
        for layer, address in enumerate(addresses):
            start = address + first * block_bytes
            code = registrar.register(start, size)
            if code != 0:
                registrar.clear_error()
                return counts, registered, code
            registered.append(start)
            counts[layer] += count
    return counts, registered, None


def release(registrar: Registrar, addresses: Sequence[int]) -> None:
    """Before the memory is given back: unmapping locked pages is undefined."""
    for address in addresses:
        if registrar.unregister(address) != 0:
            registrar.clear_error()


class CudaRegistrar:
    """The calls of the CUDA runtime that torch has loaded."""

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self._runtime: Any = torch.cuda.cudart()
        self._last_error = _last_error_function()

    def register(self, address: int, size: int) -> int:
        return int(self._runtime.cudaHostRegister(address, size, 0))

    def unregister(self, address: int) -> int:
        return int(self._runtime.cudaHostUnregister(address))

    def clear_error(self) -> None:
        if self._last_error is not None:
            self._last_error()
            return
        try:  # a launch reports the pending error and clears it
            self._torch.zeros(1, device="cuda")
            self._torch.cuda.synchronize()
        except RuntimeError:
            pass


def _last_error_function() -> Any:
    """`cudaGetLastError` of the very library torch uses, which torch's own binding leaves out."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in maps:
        if "libcudart" in line and "/" in line:
            try:
                return ctypes.CDLL(line[line.index("/") :].strip()).cudaGetLastError
            except (OSError, AttributeError):
                return None
    return None


def try_locking(registrar: Registrar, wanted: int, seconds: float) -> LockReport:
    """Lock fresh memory until `wanted` bytes, a refusal or `seconds`, and give all of it back."""
    registered: list[tuple[int, mmap.mmap]] = []
    locked, refused, begin = 0, None, time.monotonic()
    try:
        while locked < wanted and time.monotonic() - begin < seconds:
            size = -(-min(CHUNK_BYTES, wanted - locked) // PAGE) * PAGE
            pages = mmap.mmap(-1, size)
            address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
            refused = registrar.register(address, size) or None
            if refused is not None:
                registrar.clear_error()
                break
            registered.append((address, pages))
            locked += size
    finally:
        release(registrar, [address for address, _ in registered])
    return LockReport(min(locked, wanted), wanted, refused)
