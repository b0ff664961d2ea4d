"""What a disk gives to reads of one size, so many of them in flight: direct reads at random places
of a file of one's own, which is removed afterwards."""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import torch

from specfit.base.types import SpecfitError
from specfit.experts.disk_weights import DIRECT, open_for_reading
from specfit.experts.kernel_reads import KernelReads
from specfit.experts.pack import ALIGNMENT, aligned_bytes
from specfit.hardware.bandwidth import Bandwidth

SIZES = tuple(1 << power for power in range(14, 25, 2))  # 16 KiB to 16 MiB
IN_FLIGHT = (1, 2, 4)
FILE_BYTES = 256 << 20
READ_BYTES = 16 << 20
"""Of one repeat, at most; 8 reads a reader at least."""
REPEATS = 5


def measure_disk(
    folder: Path,
    sizes: Sequence[int] = SIZES,
    in_flight: Sequence[int] = IN_FLIGHT,
    file_bytes: int = FILE_BYTES,
) -> list[Bandwidth]:
    """Rows `disk x1`, `disk x2` ...: median time of a block (wall clock) with so many readers.

    Sizes are multiples of 4 KiB. Raises SpecfitError where the file cannot be written.
    """
    assert all(size % ALIGNMENT == 0 and size < file_bytes for size in sizes)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix="specfit-disk-") as file:
        try:
            for _ in range(file_bytes >> 20):
                file.write(os.urandom(1 << 20))
            file.flush()
            os.fsync(file.fileno())
        except OSError as error:
            raise SpecfitError(
                f"the disk probe needs {file_bytes >> 20} MiB in {folder} ({error.strerror}); set "
                "offload.pack to a folder with room"
            ) from None
        descriptor, way = open_for_reading(Path(file.name))
        try:
            return [_row(descriptor, way, s, n, file_bytes) for n in in_flight for s in sizes]
        finally:
            os.close(descriptor)


def _row(descriptor: int, way: str, size: int, readers: int, file_bytes: int) -> Bandwidth:
    count = readers * max(8, min(256, READ_BYTES // size // readers))
    places = [aligned_bytes(size) for _ in range(readers)]
    times = []
    for repeat in range(REPEATS):
        draw = random.Random(repeat)
        offsets = [
            draw.randrange((file_bytes - size) // ALIGNMENT) * ALIGNMENT for _ in range(count)
        ]
        begin = time.perf_counter_ns()
        _read_all(descriptor, way, places, offsets)
        times.append((time.perf_counter_ns() - begin) / count)
    median = statistics.median(times)
    rate = size / median, size / max(times), size / min(times)
    return Bandwidth(f"disk x{readers}", size, median / 1e3, *rate)


def _read_all(
    descriptor: int, way: str, places: Sequence[torch.Tensor], offsets: Sequence[int]
) -> None:
    """As the copies of a run: as many in flight as there are places, the oldest waited for."""
    with ThreadPoolExecutor(len(places)) as threads:
        start = _starting(descriptor, way, threads)
        going: deque[Callable[[], object]] = deque()
        for number, offset in enumerate(offsets):
            if len(going) == len(places):
                going.popleft()()
            going.append(start(places[number % len(places)], offset))
        for wait in going:
            wait()


def _starting(
    descriptor: int, way: str, threads: ThreadPoolExecutor
) -> Callable[[torch.Tensor, int], Callable[[], object]]:
    """What starts a read and gives what waits for it: by the kernel, or by threads as a run."""
    try:
        kernel = KernelReads() if way == DIRECT else None
    except OSError:
        kernel = None
    if kernel is not None:

        def by_kernel(place: torch.Tensor, offset: int) -> Callable[[], object]:
            return partial(kernel.wait, kernel.start(descriptor, place, offset))

        return by_kernel
    return lambda place, offset: threads.submit(_read, descriptor, place, offset).result


def _read(descriptor: int, place: torch.Tensor, offset: int) -> None:
    os.preadv(descriptor, [place.numpy().data], offset)
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, offset, place.numel(), os.POSIX_FADV_DONTNEED)


def disk_parts(table: Sequence[Bandwidth], size_bytes: int, in_flight: int) -> tuple[float, float]:
    """(GB/s, latency in microseconds) of a block: what it takes with so many in flight is
    bandwidth, and what one alone takes beyond that is latency, which a second read hides."""

    def at(readers: int) -> Bandwidth:
        rows = [row for row in table if row.memory == f"disk x{readers}"]
        return min(rows, key=lambda row: abs(row.size_bytes - size_bytes))

    known = [int(row.memory.removeprefix("disk x")) for row in table]
    many = at(max(n for n in known if n <= max(in_flight, min(known))))
    alone = at(min(known))
    rest_us = (alone.copy_us - many.copy_us) * size_bytes / alone.size_bytes
    return many.gbps, max(0.0, rest_us)
