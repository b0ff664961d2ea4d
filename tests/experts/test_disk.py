"""Experts on disk: the pack, its checks, reads that go wrong, and copies beside computing."""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from specfit.base.types import SpecfitError
from specfit.experts import disk_weights, pack
from specfit.experts.disk_copies import DiskCopyEngine
from specfit.experts.disk_weights import DIRECT, DROPPED, DiskStore
from specfit.experts.expert_format import plain_format
from specfit.experts.host_weights import device_blocks
from specfit.experts.kernel_reads import KernelRead, KernelReads
from specfit.experts.pack import ALIGNMENT, PackShape, PackWriter, aligned_bytes

ODD = PackShape("d" * 16, 2, 3, plain_format(33, 7, torch.bfloat16))
# ODD's blocks of 1,386 bytes fill no page, EVEN's are three pages.
EVEN = PackShape("e" * 16, 2, 4, plain_format(64, 16, torch.float32))


def made(folder: Path, shape: PackShape) -> tuple[Path, list[torch.Tensor]]:
    """The pack, and each block's values."""
    torch.manual_seed(3)
    writer = PackWriter(folder / shape.file_name, shape)
    blocks = []
    for layer in range(shape.layers):
        for expert in range(shape.experts):
            places = writer.places(layer, expert)
            for place in places:
                place.copy_(torch.randn(place.shape))
            blocks.append(torch.cat([place.reshape(-1) for place in places]).clone())
            writer.mark_written(layer, expert)
    writer.freeze()
    return writer.path, blocks


@pytest.mark.parametrize("shape", [ODD, EVEN])
def test_blocks_come_back_to_the_bit_and_lie_at_aligned_offsets(
    tmp_path: Path, shape: PackShape
) -> None:
    path, blocks = made(tmp_path, shape)
    store = DiskStore(path, shape)
    assert path.stat().st_size == shape.file_bytes
    assert all(shape.offset(i) % ALIGNMENT == 0 for i in range(shape.blocks))
    aligned = device_blocks(2, blocks[0].numel(), store.format.storage, torch.device("cpu"))
    for index, expected in enumerate(blocks):
        layer, expert = divmod(index, shape.experts)
        assert torch.equal(store.block(layer, expert), expected)
        for place in (aligned[1], torch.empty_like(expected)):
            store.source(layer, expert).read_into(place)
            assert torch.equal(place, expected)
            place.zero_()
            for part, third in zip(
                store.source(layer, expert).chunk(3), place.chunk(3), strict=True
            ):
                part.read_into(third)
            assert torch.equal(place, expected), "in pieces, as prefetching reads it"
    assert [p.name for p in tmp_path.iterdir()] == [shape.file_name], "nothing else is left"


def test_a_file_system_without_direct_reads_is_said_and_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, blocks = made(tmp_path, EVEN)
    opened, dropped = os.open, []

    def refuse(name: object, flags: int, *rest: int) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return opened(name, flags, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "posix_fadvise", lambda *asked: dropped.append(asked[1:]))
    store = DiskStore(path, EVEN)
    assert store.reads == DROPPED and store.notice is not None and "dropped" in store.notice
    dropped.clear()
    assert torch.equal(store.block(1, 2), blocks[6])
    assert dropped == [(EVEN.offset(6), EVEN.stride_bytes, os.POSIX_FADV_DONTNEED)]


def test_direct_reads_are_used_where_they_are_allowed(tmp_path: Path) -> None:
    path, _ = made(tmp_path, EVEN)
    store = DiskStore(path, EVEN)
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        pytest.skip("this file system refuses direct reads")
    assert store.reads == DIRECT and store.notice is None


# -- what can be wrong ---------------------------------------------------------------------------


def flip(path: Path, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 1]))


@pytest.mark.parametrize(
    ("offset", "said"),
    [
        (3, "header"),
        (EVEN.offset(5) + 100, "expert 1 of layer 1 has another checksum"),
        (EVEN.sums_at + 2, "checksums are not those"),
    ],
)
def test_a_changed_bit_is_found_on_opening(tmp_path: Path, offset: int, said: str) -> None:
    path, _ = made(tmp_path, EVEN)
    flip(path, offset)
    with pytest.raises(SpecfitError, match=f"{said}.*delete it, and the next run makes it again"):
        DiskStore(path, EVEN)


def test_a_large_pack_is_checked_block_by_block_when_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_weights, "CHECKED_ON_OPENING", 0)
    path, blocks = made(tmp_path, EVEN)
    flip(path, EVEN.offset(5))
    store = DiskStore(path, EVEN)
    assert torch.equal(store.block(1, 0), blocks[4])
    with pytest.raises(SpecfitError, match="expert 1 of layer 1"):
        store.block(1, 1)


def test_other_experts_and_a_shortened_file_are_refused(tmp_path: Path) -> None:
    path, _ = made(tmp_path, EVEN)
    other = PackShape("f" * 16, 2, 4, plain_format(64, 16, torch.float32))
    with pytest.raises(SpecfitError, match="of other experts"):
        DiskStore(path, other)
    store = DiskStore(path, EVEN)
    os.truncate(path, EVEN.offset(6) + 10)
    with pytest.raises(SpecfitError, match="ends before expert 2 of layer 1"):
        store.block(1, 2)
    with pytest.raises(SpecfitError, match=r"bytes, its header says|checksums"):
        DiskStore(path, EVEN)


def no_kernel() -> KernelReads:
    raise OSError(errno.ENOSYS, "Function not implemented")


WAYS = {"kernel": KernelReads, "threads": no_kernel}


@pytest.fixture(params=sorted(WAYS))
def way(request: pytest.FixtureRequest) -> Callable[[], KernelReads]:
    """What makes the reads of a copy engine."""
    if request.param == "kernel":
        try:
            KernelReads()
        except OSError as error:
            pytest.skip(f"this kernel makes no reads of its own ({error.strerror})")
    return WAYS[request.param]


def test_a_failing_disk_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Callable[[], KernelReads]
) -> None:
    path, _ = made(tmp_path, EVEN)
    store = DiskStore(path, EVEN)

    def fail(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "preadv", fail)
    monkeypatch.setattr(KernelReads, "wait", fail)
    copies = DiskCopyEngine(2, way)
    place = device_blocks(1, EVEN.block_bytes // 4, torch.float32, torch.device("cpu"))[0]
    copies.submit(store.source(0, 1), place)
    with pytest.raises(SpecfitError, match=r"expert 1 of layer 0 .Input/output error.; see to the"):
        copies.wait_oldest()
    copies.submit(store.source(0, 1), place)
    with pytest.raises(SpecfitError, match="Input/output error"):
        copies.drain()
    copies.drain()  # nothing is left over


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(pack.shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(SpecfitError, match=r"are free; set offload\.pack"):
        PackWriter(tmp_path / "a", EVEN)
    monkeypatch.undo()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(SpecfitError, match="the disk is full"):
        PackWriter(tmp_path / "a", EVEN)
    assert list(tmp_path.iterdir()) == []


# -- copies ----------------------------------------------------------------------------------------


def test_every_copy_brings_its_block(tmp_path: Path, way: Callable[[], KernelReads]) -> None:
    for shape in (EVEN, ODD):
        path, blocks = made(tmp_path, shape)
        store, copies = DiskStore(path, shape), DiskCopyEngine(2, way)
        cpu = torch.device("cpu")
        places = device_blocks(shape.blocks, blocks[0].numel(), store.format.storage, cpu)
        aims = [divmod(index, shape.experts) for index in range(shape.blocks)]
        marks = []
        for place, (layer, expert) in zip(places[:4], aims, strict=False):
            for part, third in zip(
                store.source(layer, expert).chunk(3), place.chunk(3), strict=True
            ):
                marks.append(copies.bring(part, third))
        for index in range(4, shape.blocks):
            if not copies.has_room():
                copies.wait_oldest()
            copies.submit(store.source(*aims[index]), places[index])
        copies.wait_brought(marks[-1])
        copies.drain()
        for place, block in zip(places, blocks, strict=True):
            assert torch.equal(place, block)
        assert copies.link.moved_bytes == shape.blocks * shape.block_bytes
        assert copies.link.busy_ns > 0


def test_the_rest_of_a_short_read_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, blocks = made(tmp_path, EVEN)
    store, copies = DiskStore(path, EVEN), DiskCopyEngine(1)
    wait = KernelReads.wait

    def short(kernel: KernelReads, read: KernelRead) -> int:
        assert wait(kernel, read) == EVEN.stride_bytes
        read.place[ALIGNMENT:] = 0
        return ALIGNMENT

    monkeypatch.setattr(KernelReads, "wait", short)
    place = device_blocks(1, EVEN.block_bytes // 4, torch.float32, torch.device("cpu"))[0]
    copies.submit(store.source(1, 2), place)
    copies.wait_oldest()
    assert torch.equal(place, blocks[6])


def test_a_read_by_the_kernel_goes_on_while_the_caller_computes(tmp_path: Path) -> None:
    path, blocks = made(tmp_path, EVEN)
    try:
        kernel = KernelReads()
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError as error:
        pytest.skip(f"no direct reads by the kernel here ({error.strerror})")
    place = aligned_bytes(EVEN.stride_bytes)
    read = kernel.start(file, place, EVEN.offset(3))
    deadline = time.monotonic() + 10
    while read.result is None and time.monotonic() < deadline:
        kernel.look()  # which waits for nothing
    assert read.result == EVEN.stride_bytes and read.end_ns > read.begin_ns
    assert torch.equal(place[: EVEN.block_bytes].view(torch.float32), blocks[3])
    os.close(file)
    with pytest.raises(OSError, match="Bad file descriptor"):
        kernel.start(file, place, 0)


class Gate:
    """A block whose read ends when it is let through."""

    nbytes = 8

    def __init__(self) -> None:
        self.begun, self.open = threading.Event(), threading.Event()

    def start(self, kernel: KernelReads, place: torch.Tensor) -> None:
        """The kernel does not read it."""

    def read_into(self, place: torch.Tensor) -> None:
        self.begun.set()
        assert self.open.wait(10)
        place.fill_(1.0)


def test_reads_go_on_beside_the_caller_and_as_many_as_are_in_flight() -> None:
    copies, gates = DiskCopyEngine(2, no_kernel), [Gate(), Gate(), Gate()]
    places = [torch.zeros(2) for _ in gates]
    for gate, place in zip(gates[:2], places, strict=False):
        copies.submit(gate, place)
    assert all(gate.begun.wait(10) for gate in gates[:2]), "both are being read"
    assert not copies.has_room() and not any(place.any() for place in places)
    mark = copies.bring(gates[2], places[2])
    assert gates[2].begun.wait(10), "a predicted one has a reader of its own"
    gates[1].open.set()
    gates[0].open.set()
    copies.wait_oldest()
    assert bool(places[0].all()) and copies.has_room()
    gates[2].open.set()
    copies.wait_brought(mark)
    assert bool(places[2].all())
    copies.drain()
    assert copies.link.moved_bytes == 24 and copies.wait_ns > 0
    assert copies.link.busy_ns > 0 and bool(np.isfinite(copies.link.gbps or np.inf))
