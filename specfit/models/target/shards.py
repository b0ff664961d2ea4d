"""One safetensors file, read by `pread`: a header of names, then the bytes of the tensors.

A mapped file counts as resident while it is read, which would double the memory of a checkpoint
that is copied into a store; `pread` moves bytes into the place they are for and leaves nothing.
"""

from __future__ import annotations

import json
import math
import os
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from specfit.base.types import SpecfitError

DTYPES: dict[str, torch.dtype] = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
FLOATS = ("F32", "F16", "BF16")
"""What weights may be stored as where no scheme says otherwise."""

_RELEASED_BYTES = 1 << 18  # norms and the like are not worth the call
_LARGEST_HEADER = 100_000_000  # the format's own limit


@dataclass(frozen=True)
class Entry:
    """Where one tensor lies: `offset` from the start of the file, in bytes."""

    name: str
    dtype: str  # as the format spells it: BF16
    shape: tuple[int, ...]
    offset: int
    size: int

    def rows(self, index: int, first: int, end: int) -> Entry:
        """tensor[index, first:end] of this tensor [n, rows, ..]."""
        row_bytes = self.size // math.prod(self.shape[:2])
        offset = self.offset + (index * self.shape[1] + first) * row_bytes
        size = (end - first) * row_bytes
        return Entry(self.name, self.dtype, (end - first, *self.shape[2:]), offset, size)


class Shard:
    """An open file and its header. Raises SpecfitError where the file is damaged or too short."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise SpecfitError(f"{path} cannot be opened ({error.strerror})") from None
        weakref.finalize(self, os.close, self._file)  # also at exit, while there is an os to ask
        self.entries = self._read_header()

    def _read_header(self) -> dict[str, Entry]:
        found = os.fstat(self._file).st_size
        length = int.from_bytes(os.pread(self._file, 8, 0), "little")
        if found < 8 or not 2 <= length <= min(found - 8, _LARGEST_HEADER):
            raise self._damaged("it has no header")
        try:
            fields = json.loads(os.pread(self._file, length, 8))
            entries = [
                entry_of(name, value, 8 + length)
                for name, value in fields.items()
                if name != "__metadata__"
            ]
        except (ValueError, TypeError, KeyError, AttributeError):
            raise self._damaged("its header is not readable") from None
        expected = max((entry.offset + entry.size for entry in entries), default=8 + length)
        if found != expected:
            raise self._damaged(f"it has {found} bytes, its header says {expected}")
        return {entry.name: entry for entry in entries}

    def _damaged(self, why: str) -> SpecfitError:
        return SpecfitError(f"{self.path} is damaged ({why}); fetch it again")

    def read_into(self, entry: Entry, place: torch.Tensor) -> None:
        """Fill `place` (contiguous host memory of the entry's dtype and element count)."""
        assert place.is_contiguous() and place.dtype == DTYPES[entry.dtype]
        assert place.numel() * place.element_size() == entry.size, "a place has the entry's size"
        view = memoryview(place.reshape(-1).view(torch.uint8).numpy().data)
        done = 0
        while done < entry.size:
            got = os.preadv(self._file, [view[done:]], entry.offset + done)
            if got <= 0:
                raise self._damaged(f"tensor {entry.name} ends early")
            done += got
        self._release(entry)

    def _release(self, entry: Entry) -> None:
        """What was read is not read again: 61 GB of page cache would push out the store's room."""
        if entry.size >= _RELEASED_BYTES and hasattr(os, "posix_fadvise"):
            with suppress(OSError):  # a file system without a page cache
                os.posix_fadvise(self._file, entry.offset, entry.size, os.POSIX_FADV_DONTNEED)

    def read(self, entry: Entry) -> torch.Tensor:
        """The tensor in host memory of its own."""
        tensor = torch.empty(entry.shape, dtype=DTYPES[entry.dtype])
        if entry.size:
            self.read_into(entry, tensor)
        return tensor


def entry_of(name: str, value: dict, data_start: int) -> Entry:  # type: ignore[type-arg]
    """One header line; ValueError where its numbers contradict each other."""
    begin, end = value["data_offsets"]
    shape = tuple(int(side) for side in value["shape"])
    entry = Entry(name, value["dtype"], shape, data_start + begin, end - begin)
    known = DTYPES.get(entry.dtype)
    if begin < 0 or entry.size < 0 or any(side < 0 for side in shape):
        raise ValueError(name)
    if known is not None and math.prod(shape) * known.itemsize != entry.size:
        raise ValueError(name)
    return entry
