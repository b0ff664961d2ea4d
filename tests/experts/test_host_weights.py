"""The host store: exact blocks, memory that is there, page-locking that may be refused half way."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field

import pytest

torch = pytest.importorskip("torch")

from specfit.base.types import SpecfitError  # noqa: E402
from specfit.experts import host_weights  # noqa: E402
from specfit.experts.expert_format import plain_format  # noqa: E402
from specfit.experts.host_weights import ExpertStore  # noqa: E402
from specfit.experts.pinned import (  # noqa: E402
    ALREADY_REGISTERED,
    PAGE,
    LockReport,
    chunk_blocks,
    try_locking,
)
from specfit.hardware.memory import HostMemory  # noqa: E402


@dataclass
class FakeCuda:
    """Registers ranges as CUDA does: no overlap, at most `limit` bytes, errors stay pending."""

    limit: int = 1 << 40
    held: dict[int, int] = field(default_factory=dict)
    pending: int = 0
    seen: list[tuple[int, int]] = field(default_factory=list)

    def register(self, address: int, size: int) -> int:
        assert self.pending == 0, "a pending error was not cleared"
        assert address % PAGE == 0 and size % PAGE == 0, "whole pages"
        for start, length in self.held.items():
            if address < start + length and start < address + size:
                self.pending = ALREADY_REGISTERED
                return ALREADY_REGISTERED
        if sum(self.held.values()) + size > self.limit:
            self.pending = 2  # out of memory
            return 2
        self.held[address] = size
        self.seen.append((address, size))
        return 0

    def unregister(self, address: int) -> int:
        del self.held[address]
        return 0

    def clear_error(self) -> None:
        self.pending = 0


def filled(layers: int = 3, experts: int = 6, hidden: int = 64, inner: int = 16) -> ExpertStore:
    store = ExpertStore(layers, experts, plain_format(hidden, inner, torch.float32))
    for layer in range(layers):
        for expert in range(experts):
            value = float(10 * layer + expert)
            gate, down = (
                torch.full((inner, hidden), value),
                torch.full((hidden, inner), value + 0.5),
            )
            store.write(layer, expert, (gate, gate + 0.25, down))
    store.freeze()
    return store


def test_blocks_hold_gate_up_down_side_by_side() -> None:
    store = filled()
    block = store.block(2, 4)
    gate, up, down = block.chunk(3)
    assert gate.eq(24.0).all() and up.eq(24.25).all() and down.eq(24.5).all()
    assert block.numel() * 4 == store.block_bytes and block.is_contiguous()
    assert store.total_bytes == 3 * 6 * store.block_bytes


def test_layers_begin_at_page_borders() -> None:
    store = ExpertStore(3, 5, plain_format(33, 7, torch.bfloat16))
    assert all(store.block(layer, 0).data_ptr() % PAGE == 0 for layer in range(3))


def test_a_store_is_whole_before_it_is_frozen_and_then_closed() -> None:
    store = ExpertStore(1, 2, plain_format(4, 4, torch.float32))
    with pytest.raises(AssertionError, match="every expert"):
        store.freeze()
    store.mark_written(0, 0)
    store.mark_written(0, 1)
    store.freeze()
    with pytest.raises(AssertionError, match="immutable"):
        store.places(0, 0)


def test_parts_of_another_shape_are_refused() -> None:
    store = ExpertStore(1, 1, plain_format(4, 2, torch.float32))
    with pytest.raises(AssertionError, match="exactly"):
        store.write(0, 0, (torch.zeros(2, 4), torch.zeros(2, 4), torch.zeros(2, 4)))


def test_too_little_memory_is_said_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_weights, "host_memory", lambda: HostMemory(None, 50_000_000, None))
    with pytest.raises(SpecfitError, match=r"need 58\.0 GB.*0\.1 are free; free memory or"):
        ExpertStore(48, 128, plain_format(2048, 768, torch.bfloat16))


# -- page-locking --------------------------------------------------------------------------------


def test_everything_is_locked_in_chunks_of_whole_blocks() -> None:
    store, cuda = filled(), FakeCuda()
    report = store.lock(cuda, chunk_bytes=2 * store.block_bytes)
    assert report.is_whole and report.locked_bytes == store.total_bytes
    assert all(store.is_locked(layer, e) for layer in range(3) for e in range(6))
    assert len(cuda.seen) == 9
    for layer in range(3):  # no copy of a block spans two registrations
        for expert in range(6):
            begin = store.block(layer, expert).data_ptr()
            end = begin + store.block_bytes
            assert any(a <= begin and end <= a + size for a, size in cuda.seen)


def test_a_refused_chunk_ends_the_locking_and_its_error_is_cleared() -> None:
    store = filled()
    cuda = FakeCuda(limit=8 * store.block_bytes)  # a chunk of two of each layer, one more
    report = store.lock(cuda, chunk_bytes=2 * store.block_bytes)
    assert cuda.pending == 0
    assert report == LockReport(8 * store.block_bytes, store.total_bytes, refused=2)
    locked = [sum(store.is_locked(layer, e) for e in range(6)) for layer in range(3)]
    assert locked == [4, 2, 2], "no layer is left without"


def test_a_store_that_was_never_locked_is_pageable() -> None:
    assert not filled().is_locked(0, 0)


def test_locks_go_with_the_store() -> None:
    store, cuda = filled(), FakeCuda()
    store.lock(cuda)
    assert cuda.held
    del store
    gc.collect()
    assert not cuda.held


def test_odd_blocks_lock_a_layer_at_a_time_to_the_end_of_its_page() -> None:
    store = ExpertStore(2, 3, plain_format(9, 5, torch.bfloat16))  # 270-byte blocks fill no page
    for layer in range(2):
        for expert in range(3):
            store.mark_written(layer, expert)
    store.freeze()
    cuda = FakeCuda()
    assert store.lock(cuda, chunk_bytes=100).is_whole
    assert [size for _, size in cuda.seen] == [PAGE, PAGE]


def test_chunks_of_the_30b_model_are_page_multiples_below_the_limit() -> None:
    block = 3 * 2048 * 768 * 2
    step = chunk_blocks(block, 128, 256 << 20)
    assert step == 28 and step * block % PAGE == 0


def test_what_is_said_of_a_partial_lock() -> None:
    report = LockReport(41 << 30, 54 << 30, refused=2)
    assert report.sentence().startswith("41 of 54 GiB locked (CUDA error 2")


def test_a_trial_gives_everything_back() -> None:
    cuda = FakeCuda(limit=20 << 20)
    report = try_locking(cuda, 16 << 20, seconds=5.0)
    assert report.is_whole and not cuda.held
    refused = try_locking(FakeCuda(limit=1 << 20), 16 << 20, seconds=5.0)
    assert refused.refused == 2 and refused.locked_bytes == 0
