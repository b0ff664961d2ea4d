"""RAM between the disk and the device: what it decides, what it counts, and in which order bytes
move.

A block is poison (NaN) while it is read and while it travels, and results must equal those of
experts in host memory to the last bit.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest
import torch

from specfit.base.types import ForwardTrace, SpecfitError
from specfit.experts.copies import CopyEngine, CpuCopyEngine
from specfit.experts.cuda_copies import StreamedCopyEngine
from specfit.experts.disk_copies import DiskCopyEngine
from specfit.experts.disk_weights import DiskStore
from specfit.experts.engine import ExpertEngine
from specfit.experts.eviction import POLICIES
from specfit.experts.host_weights import ExpertStore
from specfit.experts.policy_cache import Movement, MovingCache
from specfit.experts.prefetch import Prefetcher
from specfit.experts.queued_streams import QueuedStreams
from specfit.experts.ram_store import Passage, RamStore
from specfit.hardware.idle_link import PIECES, IdleLink
from tests.experts.simulated import Device
from tests.experts.test_cuda_copies import (
    EXPERTS,
    FAVOURS,
    HIDDEN,
    LAYERS,
    SEEDS,
    TOP_K,
    Locked,
    engine,
    prefetching_story,
    reference,
    store,
    story,
)

__all__ = ["reference", "store"]  # fixtures
IN_FLIGHT = 2


@dataclass
class Disk:
    """A store whose blocks are poison while they are read, slowly; it counts what is read.

    `on_read` hears of each place and whether its read begins or ends.
    """

    store: ExpertStore
    on_read: Callable[[torch.Tensor, bool], None] = lambda place, begins: None
    reads: Counter[tuple[int, int]] = field(default_factory=Counter)
    broken: tuple[int, int] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def source(self, layer: int, expert: int) -> OnDisk:
        return OnDisk(self, (layer, expert), self.store.block(layer, expert))


@dataclass
class OnDisk:
    disk: Disk
    key: tuple[int, int]
    values: torch.Tensor
    counts: bool = True

    @property
    def nbytes(self) -> int:
        return self.values.nbytes

    def chunk(self, count: int) -> list[OnDisk]:
        parts = self.values.chunk(count)
        return [OnDisk(self.disk, self.key, part, i == 0) for i, part in enumerate(parts)]

    def read_into(self, place: torch.Tensor) -> None:
        if self.key == self.disk.broken:
            raise SpecfitError(f"expert {self.key[1]} of layer {self.key[0]} has another checksum")
        self.disk.on_read(place, True)
        place.fill_(float("nan"))
        time.sleep(1e-4)
        place.copy_(self.values)
        self.disk.reads[self.key] += self.counts
        self.disk.on_read(place, False)


def behind_ram(disk: Disk, slots: int, ahead: int = 0, policy: str = "lru") -> RamStore:
    shape = disk.layers, disk.experts, slots, IN_FLIGHT + 1
    cache = MovingCache(*shape, Movement(POLICIES[policy], bypass=True))
    made = RamStore(cast(DiskStore, disk), cache, ahead)
    for block in made._free:
        block.memory.fill_(float("nan"))
    return made


def traces_of(made: ExpertEngine) -> list[ForwardTrace]:
    """Filled as the engine ends forwards."""
    traces: list[ForwardTrace] = []
    end = made.end_forward

    def end_forward(rows: int, is_prefill: bool) -> ForwardTrace:
        traces.append(end(rows, is_prefill))
        return traces[-1]

    made.end_forward = end_forward  # type: ignore[method-assign]
    return traces


def forward(made: ExpertEngine, routes: list[list[list[int]]]) -> ForwardTrace:
    """routes [L][T][k]."""
    made.begin_forward(on_clock=True)
    for layer, ids in enumerate(routes):
        rows = len(ids)
        made.run(layer, torch.ones(rows, HIDDEN), torch.tensor(ids), torch.ones(rows, len(ids[0])))
    return made.end_forward(len(routes[0]), is_prefill=False)


def levels(trace: ForwardTrace) -> tuple[int, int, int]:
    """Hits on the device, hits in RAM, reads."""
    assert trace.ram_hits is not None and trace.reads is not None
    return int(trace.hits.sum()), trace.ram_hits, trace.reads


# -- what is decided and counted ------------------------------------------------------------------


HAND_COUNTED = [
    # routes of one row        device, RAM, read   what is in RAM then
    ([0], (0, 0, 1), {0}),
    ([1], (0, 0, 1), {0, 1}),
    ([0], (0, 1, 0), {0, 1}),
    ([0], (1, 0, 0), {0, 1}),  # in the device's slot: RAM does not hear of it
    ([2], (0, 0, 1), {0, 2}),  # 1 was asked for longest ago
    ([1], (0, 0, 1), {1, 2}),
    ([2], (0, 1, 0), {1, 2}),
    ([0, 1, 2], (1, 1, 1), {0, 1}),  # 1 is asked for now, so 2 goes, which the device still has
    ([3, 4, 5], (0, 0, 3), {3, 4}),  # 5 passes through: the others are of this forward
    ([5], (1, 0, 0), {3, 4}),
    ([4], (0, 1, 0), {3, 4}),
    ([5], (0, 0, 1), {4, 5}),
]


def test_a_hand_counted_trace(store: ExpertStore) -> None:
    """One slot on the device, two in RAM, least recently used on both; the second layer stays with
    one expert."""
    disk = Disk(store)
    ram = behind_ram(disk, 2)
    made = engine(ram, 1, DiskCopyEngine(IN_FLIGHT))
    for number, (routes, counted, held) in enumerate(HAND_COUNTED):
        beside = np.array([0, 0, 1] if number == 0 else [1, 0, 0])
        trace = forward(made, [[routes], [[7] * len(routes)]])
        assert levels(trace) == tuple(np.array(counted) + beside), f"forward {number + 1}"
        assert set(ram.cache.resident(0).tolist()) == held, f"forward {number + 1}"
    assert disk.reads == {
        (0, 0): 2,
        (0, 1): 2,
        (0, 2): 1,
        (0, 3): 1,
        (0, 4): 1,
        (0, 5): 2,
        (1, 7): 1,
    }


class Level:
    """A cache of one layer, said plainly: no numba, no arrays."""

    def __init__(self, slots: int, policy: str, keeps_own: bool) -> None:
        self.slots, self.policy, self.keeps_own = slots, policy, keeps_own
        self.held: dict[int, tuple[int, int]] = {}  # expert -> forward and row of its last use
        self.uses: Counter[int] = Counter()

    def ask(self, now: int, demand: list[tuple[int, int, int]]) -> tuple[list[int], list[int]]:
        """(expert, first row, last row) of all -> hits, and misses in load order."""
        for expert, _, _ in demand:
            self.uses[expert] += 1
        last = {expert: row for expert, _, row in demand}
        hits = sorted(e for e in last if e in self.held)
        misses = [e for _, e in sorted((first, e) for e, first, _ in demand if e not in self.held)]
        # A policy ranks those that were here when the layer came; the rank stays for the layer.
        worth = {e: self.uses[e] if self.policy == "lfu" else self.held[e][0] for e in self.held}
        before = {e: (worth[e], *self.held[e], e) for e in self.held}
        in_use = dict.fromkeys(hits)
        for expert in hits:
            self.held[expert] = now, last[expert]
        for expert in misses:
            if len(self.held) == self.slots:
                others = [e for e in self.held if e not in in_use]
                if others:
                    victim = min(others, key=before.__getitem__)
                elif self.keeps_own or not self.slots:
                    continue
                else:
                    victim = min(self.held, key=lambda e: (self.held[e][1], e))
                del self.held[victim]
            self.held[expert] = now, last[expert]
            in_use[expert] = None
        return hits, misses


@pytest.mark.parametrize("policy", ["lru", "lfu"])
@pytest.mark.parametrize("slots", [0, 1, 4])
@pytest.mark.parametrize("ram_slots", [1, 3, 6, EXPERTS])
def test_the_three_tiers_are_those_of_a_plain_simulation(
    store: ExpertStore, policy: str, slots: int, ram_slots: int
) -> None:
    rng = np.random.default_rng(slots * 100 + ram_slots)
    disk = Disk(store)
    ram = behind_ram(disk, ram_slots, policy=policy)
    movement = None if policy == "lru" else Movement(POLICIES[policy])
    made = engine(ram, slots, DiskCopyEngine(IN_FLIGHT), None, movement)
    device = [Level(slots, policy, False) for _ in range(LAYERS)]
    memory = [Level(ram_slots, policy, True) for _ in range(LAYERS)]
    reads = 0
    popular = rng.random(EXPERTS) ** 3
    for now in range(1, 25):
        rows = int(rng.choice([1, 1, 2, 5]))
        chosen = [
            [
                rng.choice(EXPERTS, TOP_K, False, popular / popular.sum()).tolist()
                for _ in range(rows)
            ]
            for _ in range(LAYERS)
        ]
        counted = np.zeros(3, np.int64)
        for layer, ids in enumerate(chosen):
            rows_of = {
                e: [t for t, row in enumerate(ids) if e in row] for e in np.unique(ids).tolist()
            }
            hits, misses = device[layer].ask(now, [(e, t[0], t[-1]) for e, t in rows_of.items()])
            there, read = memory[layer].ask(now, [(e, j, j) for j, e in enumerate(misses)])
            counted += len(hits), len(there), len(read)
        trace = forward(made, chosen)
        assert levels(trace) == tuple(counted.tolist())
        assert sum(levels(trace)[1:]) == trace.misses.sum()
        reads += int(counted[2])
        assert disk.reads.total() == reads, "as many as the disk was asked for"
        for layer in range(LAYERS):
            assert set(ram.cache.resident(layer).tolist()) == set(memory[layer].held)
    assert reads > 0


def test_every_block_is_somewhere_and_none_is_in_two_places(store: ExpertStore) -> None:
    ram = behind_ram(Disk(store), 3, ahead=4)
    link = IdleLink(10, 1, 1, 30, 5, 20, 25.0, 0.0, 0.0)
    ahead = Prefetcher("layer", 4, LAYERS, EXPERTS, link)
    made = engine(ram, 2, DiskCopyEngine(IN_FLIGHT), None, Movement(prefetcher=ahead))
    for _ in prefetching_story(made):
        blocks = [*ram._free, *ram._in.values(), *(block for _, block in ram._area.values())]
        assert len({id(block) for block in blocks}) == len(blocks) == LAYERS * 3 + 4 + IN_FLIGHT + 1


def test_off_the_clock_nothing_is_counted_and_nothing_moves_in(store: ExpertStore) -> None:
    ram = behind_ram(Disk(store), 3)
    made = engine(ram, 1, DiskCopyEngine(IN_FLIGHT))
    forward(made, [[[0, 1, 2]], [[0, 1, 2]]])
    before = ram.state()
    made.begin_forward(on_clock=False, whole=True)
    for layer in range(LAYERS):
        made.run(layer, torch.ones(1, HIDDEN), torch.tensor([[1, 8, 9]]), torch.ones(1, TOP_K))
    assert all(np.array_equal(array, ram.state()[name]) for name, array in before.items())
    assert levels(forward(made, [[[1]], [[1]]])) == (0, 2, 0)


@pytest.mark.parametrize("policy", ["lru", "lfu", "static"])
def test_a_restored_residency_goes_on_as_it_would_have(store: ExpertStore, policy: str) -> None:
    rng = np.random.default_rng(5)
    routes = [rng.integers(0, EXPERTS, (LAYERS, 2, TOP_K)).tolist() for _ in range(8)]

    def fresh() -> ExpertEngine:
        ram = behind_ram(Disk(store), 4, policy=policy)
        ram.cache.count(np.tile(np.arange(EXPERTS), (LAYERS, 1)))
        return engine(ram, 2, DiskCopyEngine(IN_FLIGHT))

    whole = fresh()
    ahead = [levels(forward(whole, one)) for one in routes[:5]]
    kept = {name: array.copy() for name, array in whole.residency().items()}
    rest = [levels(forward(whole, one)) for one in routes[5:]]
    again = fresh()
    assert again.ram is not None
    again.restore(kept)
    for layer in range(LAYERS):
        for expert in again.ram.cache.resident(layer).tolist():
            assert torch.equal(again.ram.block(layer, expert), store.block(layer, expert))
    assert [levels(forward(again, one)) for one in routes[5:]] == rest
    whole.restore(kept)
    assert [levels(forward(whole, one)) for one in routes[5:]] == rest
    assert sum(hits for _, hits, _ in ahead + rest) > 0
    with pytest.raises(SpecfitError, match="start the run anew"):
        again.restore({n: a for n, a in kept.items() if not n.startswith("ram_")})


# -- bytes -----------------------------------------------------------------------------------------


class Watched:
    """Listens to reads and to device copies, block by block of RAM, and notes what comes too early.

    Between the two stands a lock, since reads are of other threads than the device's steps.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.wrong: list[str] = []
        self.reading: Counter[int] = Counter()
        self.leaving: Counter[int] = Counter()
        self.read = self.left = 0
        self._lock = threading.Lock()
        self._copy, device.copy = device.copy, self.copy  # type: ignore[method-assign]

    def of(self, ram: RamStore) -> None:
        self._base = min(block.memory.data_ptr() for block in ram._free)
        self._size = ram.block_bytes

    def _parts(self, place: torch.Tensor) -> range:
        """By thirds of blocks, as predicted experts travel."""
        first = (place.data_ptr() - self._base) * PIECES // self._size
        return range(first, first + place.nbytes * PIECES // self._size)

    def on_read(self, place: torch.Tensor, begins: bool) -> None:
        parts = self._parts(place)
        with self._lock:
            if begins and any(self.leaving[part] for part in parts):
                self.wrong.append("read into a block whose copy had not ended")
            self.reading.update(dict.fromkeys(parts, 1 if begins else -1))
            self.read += begins

    def copy(self, stream: int, source: torch.Tensor, place: torch.Tensor, locked: bool) -> None:
        parts = self._parts(source)
        with self._lock:
            if any(self.reading[part] for part in parts) or bool(source.isnan().any()):
                self.wrong.append("copied to the device before its read had ended")
            self.leaving.update(parts)
        self._copy(stream, source, place, locked)

        def ended() -> None:
            with self._lock:
                self.left += 1
                self.leaving.subtract(parts)

        self.device.push(stream, ended)


def on_a_device(
    store: ExpertStore,
    slots: int,
    ram_slots: int,
    seed: int,
    favour: float,
    prefetcher: Prefetcher | None = None,
) -> tuple[ExpertEngine, Watched, Disk]:
    device = Device(seed, favour)
    watched = Watched(device)
    disk = Disk(store, watched.on_read)
    ahead = prefetcher.blocks if prefetcher is not None else 0
    ram = behind_ram(disk, ram_slots, ahead)
    watched.of(ram)
    locked = Locked(device)
    streams = QueuedStreams(cast(Any, locked), IN_FLIGHT + (prefetcher is not None))
    movement = Movement(prefetcher=prefetcher) if prefetcher is not None else None
    copies: CopyEngine = StreamedCopyEngine(streams, IN_FLIGHT)
    return engine(ram, slots, copies, cast(Any, locked), movement), watched, disk


@pytest.mark.parametrize("slots", [0, 1, 4, EXPERTS])
@pytest.mark.parametrize("ram_slots", [0, 1, 5, EXPERTS])
def test_no_order_of_reads_and_copies_changes_a_bit(
    store: ExpertStore, reference: list[torch.Tensor], slots: int, ram_slots: int
) -> None:
    """Disk to pinned memory to the device, whatever the device does first."""
    counted = []
    for seed, favour in zip(SEEDS, [*FAVOURS, 1.0], strict=True):
        made, watched, disk = on_a_device(store, slots, ram_slots, seed, favour)
        traces = traces_of(made)
        assert all(map(torch.equal, story(made), reference))
        assert watched.wrong == [] and 0 < watched.read <= watched.left
        assert disk.reads.total() == watched.read
        counted.append([(t.hits.tolist(), t.ram_hits, t.reads) for t in traces])
    ram = behind_ram(Disk(store), ram_slots)
    here = engine(ram, slots, DiskCopyEngine(IN_FLIGHT))
    traces = traces_of(here)
    assert all(map(torch.equal, story(here), reference))
    counted.append([(t.hits.tolist(), t.ram_hits, t.reads) for t in traces])
    assert all(one == counted[0] for one in counted), "what is counted depends on no timing"


@pytest.mark.parametrize("ram_slots", [0, 2, EXPERTS])
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_predicted_experts_come_through_ram(
    store: ExpertStore, reference: list[torch.Tensor], seed: int, ram_slots: int
) -> None:
    link = IdleLink(10, 1, 1, 30, 5, 20, 25.0, 0.0, 0.0)
    kept = []
    for favour in (*FAVOURS, None):
        ahead = Prefetcher("layer", 4, LAYERS, EXPERTS, link)
        if favour is None:
            disk = Disk(store)
            moves = Movement(prefetcher=ahead)
            made = engine(behind_ram(disk, ram_slots, 4), 2, DiskCopyEngine(2), None, moves)
        else:
            made, watched, disk = on_a_device(store, 2, ram_slots, seed, favour, ahead)
        traces = traces_of(made)
        assert all(map(torch.equal, prefetching_story(made), reference))
        assert favour is None or watched.wrong == []
        prefetched = sum(t.prefetched for t in traces)
        copied = sum(int(t.misses.sum()) for t in traces) + prefetched
        if ram_slots:
            found = [(t.ram_hits or 0, t.reads or 0) for t in traces]
            assert sum(map(sum, found)) == copied and prefetched > 0
            kept.append(found)
    assert all(one == kept[0] for one in kept)


def test_what_was_predicted_and_used_stays_in_ram(store: ExpertStore) -> None:
    """By hand: expert 5 comes early through RAM, is demanded, leaves the device and is found."""
    ahead = Prefetcher("layer", 2, LAYERS, EXPERTS, IdleLink(10, 1, 1, 30, 5, 20, 25.0, 0, 0))
    disk = Disk(store)
    ram = behind_ram(disk, 3, ahead=2)
    made = engine(ram, 1, DiskCopyEngine(2), None, Movement(prefetcher=ahead))
    ahead._coming, ahead._block = (0, 5), ahead._free.pop(0)
    ahead.brought.begun += 1
    for piece in range(PIECES):
        made._bring(0, 5, ahead._block, piece)
    ahead._in[(0, 5)] = ahead._block
    ahead._coming = None
    first = forward(made, [[[5]], [[7]]])
    assert (levels(first), first.used) == ((1, 0, 2), 1), "read early, and the other layer's"
    assert ram.holds(0, 5)
    assert levels(forward(made, [[[6]], [[7]]])) == (1, 0, 1)
    assert levels(forward(made, [[[5]], [[7]]])) == (1, 1, 0)
    assert disk.reads == {(0, 5): 1, (1, 7): 1, (0, 6): 1}


@pytest.mark.parametrize("ram_slots", [0, 1])
def test_a_block_that_is_read_into_too_early_is_caught(
    store: ExpertStore, monkeypatch: pytest.MonkeyPatch, ram_slots: int
) -> None:
    monkeypatch.setattr(Passage, "wait", lambda self: None)
    wrong = 0
    for seed in SEEDS:
        made, watched, _ = on_a_device(store, 1, ram_slots, seed, 50.0)
        list(story(made))
        wrong += bool(watched.wrong)
    assert wrong == len(SEEDS)


def test_a_copy_that_does_not_wait_for_its_read_is_caught(
    store: ExpertStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hasty(self: Passage, copy: Callable[[torch.Tensor], Any]) -> None:
        self._started.set_result(copy(self._part))
        if self._read is not None:
            self._read.read_into(self._part)

    monkeypatch.setattr(Passage, "carry_out", hasty)
    made, watched, _ = on_a_device(store, 1, 4, 0, 1.0)
    list(story(made))
    assert "copied to the device before its read had ended" in watched.wrong


def test_reads_go_on_side_by_side_and_before_the_device_takes_them(store: ExpertStore) -> None:
    """Two readers, and a device that does not move: both blocks are in RAM all the same."""
    device, together = Device(0), threading.Barrier(2)

    def on_read(place: torch.Tensor, begins: bool) -> None:
        if begins:
            together.wait(10)  # passes only with another read going

    disk = Disk(store, on_read)
    ram = behind_ram(disk, 4)
    copies = StreamedCopyEngine(QueuedStreams(cast(Any, Locked(device)), 2), 2)
    ram.begin_forward()
    ram.plan(0, np.empty(0, np.int64), (), np.array([3, 8]))
    copies.begin_layer(waits=2, runs=2)
    places = [torch.zeros_like(store.block(0, 3)) for _ in range(2)]
    for expert, place in zip((3, 8), places, strict=True):
        copies.submit(ram.source(0, expert), place)
    for _ in range(1000):
        if disk.reads.total() == 2:
            break
        time.sleep(0.01)
    assert disk.reads.total() == 2 and not any(place.any() for place in places)
    copies.wait_oldest()
    copies.wait_oldest()
    copies.end_layer()
    device.synchronise()
    copies.drain()
    assert torch.equal(places[0], store.block(0, 3)) and torch.equal(places[1], store.block(0, 8))
    assert copies.link.moved_bytes == 2 * store.block_bytes


def test_a_read_into_the_block_of_a_predicted_copy_needs_no_help_of_the_caller(
    store: ExpertStore,
) -> None:
    """The caller waits for expert 5, whose read waits for three parts of what was predicted."""
    gate, held = threading.Event(), []

    def on_read(place: torch.Tensor, begins: bool) -> None:
        if begins and not held:
            held.append(gate.wait(10))

    disk = Disk(store, on_read)
    cache = MovingCache(LAYERS, EXPERTS, 1, 1, Movement(bypass=True))
    ram, copies = RamStore(cast(DiskStore, disk), cache, 1), DiskCopyEngine(1)
    area, place = (torch.zeros_like(store.block(0, 0)) for _ in range(2))
    blocks = []
    for piece in range(PIECES):
        copies.bring(ram.piece(0, 8, 0, piece), area.chunk(PIECES)[piece])
    blocks.append(ram._area[0][1])
    copies.bring(ram.piece(0, 9, 0, 0), torch.zeros_like(area.chunk(PIECES)[0]))  # 8 was dropped
    for expert in (3, 4, 5):
        ram.begin_forward()
        ram.plan(0, np.empty(0, np.int64), (), np.array([expert]))
        copies.submit(ram.source(0, expert), place)
        waiting = threading.Thread(target=copies.wait_oldest, daemon=True)
        waiting.start()
        if expert == 5:
            assert ram._in[0, 5] is blocks[0] and not waiting.join(0.1) and waiting.is_alive()
            gate.set()
        waiting.join(10)
        assert not waiting.is_alive() and torch.equal(place, store.block(0, expert))
    copies.drain()
    assert torch.equal(area, store.block(0, 8)), "copied before its block was read into"


def damaged(store: ExpertStore, on_device: bool) -> Iterator[ExpertEngine]:
    for number in range(3):
        if on_device:
            made, _, disk = on_a_device(store, 1, 4, number, 1.0)
        else:
            disk = Disk(store)
            made = engine(behind_ram(disk, 4), 1, DiskCopyEngine(IN_FLIGHT))
        disk.broken = (1, 4)
        yield made


@pytest.mark.parametrize("on_device", [False, True])
def test_a_read_that_fails_is_one_sentence_and_nothing_waits_for_ever(
    store: ExpertStore, on_device: bool
) -> None:
    for made in damaged(store, on_device):
        with pytest.raises(SpecfitError, match="expert 4 of layer 1 has another checksum"):
            forward(made, [[[0, 1, 2]], [[3, 4, 5], [6, 7, 8]]])
        with pytest.raises(SpecfitError, match="expert 4 of layer 1"):
            made.copies.drain()
            forward(made, [[[0, 1, 2]], [[4, 9, 10]]])


# -- pinned memory ---------------------------------------------------------------------------------


class Registrar:
    """Locks so many bytes and then refuses."""

    def __init__(self, room: int) -> None:
        self.room, self.held = room, dict[int, int]()

    def register(self, address: int, size: int) -> int:
        if sum(self.held.values()) + size > self.room:
            return 2
        self.held[address] = size
        return 0

    def unregister(self, address: int) -> int:
        return 0 if self.held.pop(address, None) is not None else 1

    def clear_error(self) -> None:
        pass


@pytest.mark.parametrize("room", [1 << 30, 0])
def test_rams_blocks_are_locked_for_a_device_and_let_go(store: ExpertStore, room: int) -> None:
    registrar = Registrar(room)
    cache = MovingCache(LAYERS, EXPERTS, 3, IN_FLIGHT + 1, Movement(bypass=True))
    ram = RamStore(cast(DiskStore, Disk(store)), cache, 2, registrar)
    count = LAYERS * 3 + IN_FLIGHT + 1 + 2
    assert ram.lock_report is not None
    assert ram.lock_report.total_bytes == count * store.block_bytes
    assert ram.lock_report.is_whole == (room > 0) == ram.source(0, 0).locked
    del ram
    assert registrar.held == {}


def test_host_memory_has_no_such_counts(store: ExpertStore) -> None:
    trace = forward(engine(store, 2, CpuCopyEngine(2)), [[[0, 1, 2]], [[0, 1, 2]]])
    assert trace.ram_hits is None and trace.reads is None
