"""Host RAM as a second cache: slots of each layer between the disk and the device.

What the device misses is demanded here, under the run's own policy. A hit is copied to the device
without a read. Anything else is read into RAM and copied from there (`offload.ram_slots`).

The two levels evict on their own: an expert on the device may have left RAM, since weights never
change. Within one layer of a forward nothing is evicted that the layer has asked for: what it
misses beyond its slots passes through spare blocks and is not kept. What is predicted comes
through a spare block too, and gets a slot once it is demanded.

A block that makes room is read into only after every copy out of it has ended. All decisions are
the caller's thread's; a `Passage` is carried out by whichever thread copies.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch

from specfit.experts.cache_plan import NONE, Int64Array
from specfit.experts.disk_weights import DiskBlock, DiskStore
from specfit.experts.host_weights import device_blocks, refuse_without_memory
from specfit.experts.kernel_reads import KernelReads
from specfit.experts.pinned import CHUNK_BYTES, LockReport, Registrar, lock_layers, release
from specfit.experts.policy_cache import MovingCache
from specfit.hardware.idle_link import PIECES

STATE = "ram_"
"""Before the names of a residency's arrays that are of RAM."""


class Departure(Protocol):
    """A copy to the device that has been started."""

    def wait(self) -> None: ...

    def has_passed(self) -> bool: ...


@dataclass(eq=False)
class _Block:
    memory: torch.Tensor  # [format.elements]
    locked: bool
    before: list[Passage] = field(default_factory=list)  # of the expert that was here before
    passages: list[Passage] = field(default_factory=list)


class Passage:
    """One copy out of a block of RAM, or of a part of it, which is first read where it has to be.

    Passages of a block are carried out in the order they were made, or beside each other.
    """

    def __init__(self, block: _Block, part: torch.Tensor, read: DiskBlock | None) -> None:
        self.nbytes, self.locked = part.nbytes, block.locked
        self._part, self._read = part, read
        self._before = block.before if read is not None else []
        block.passages = [one for one in block.passages if not one._has_ended()]
        self._beside = [*block.passages]
        block.passages.append(self)
        self._started: Future[Departure | None] = Future()

    def carry_out(self, copy: Callable[[torch.Tensor], Departure | None]) -> None:
        """`copy` starts the copy; it returns None where that has also ended it. Raises SpecfitError
        for a read that fails, here and in every later passage of this block."""
        try:
            for passage in self._before:
                passage.wait()
            for passage in self._beside:  # what they read is here
                passage._started.result()
            if self._read is not None:
                self._read.read_into(self._part)
            self._started.set_result(copy(self._part))
        except BaseException as error:
            self._started.set_exception(error)
            raise
        finally:
            self._before, self._beside = [], []

    def start(self, kernel: KernelReads, place: torch.Tensor) -> None:
        """Not by the kernel: it may have to wait for others, which a thread does."""
        return None

    def read_into(self, place: torch.Tensor) -> None:
        """Where the device is this machine's own memory."""

        def copy(here: torch.Tensor) -> None:
            place.copy_(here)

        self.carry_out(copy)

    def wait(self) -> None:
        departure = self._started.result()
        if departure is not None:
            departure.wait()

    def _has_ended(self) -> bool:
        if not self._started.done() or self._started.exception() is not None:
            return False
        departure = self._started.result()
        return departure is None or departure.has_passed()


class RamStore:
    """A `DiskStore` behind RAM: the interface of `HostStore`, whose sources are passages.

    `ahead`: blocks of the area that predicted experts come into; each may hold one here meanwhile.
    `registrar`: page-locks the blocks, for a GPU. Raises SpecfitError for too little memory.
    """

    def __init__(
        self,
        disk: DiskStore,
        cache: MovingCache,
        ahead: int = 0,
        registrar: Registrar | None = None,
    ) -> None:
        self.disk, self.cache = disk, cache
        self.layers, self.experts, self.format = disk.layers, disk.experts, disk.format
        self.block_bytes, self.total_bytes = disk.block_bytes, disk.total_bytes
        count = ram_blocks(cache.n_layers, cache.n_slots, cache.staging_blocks + ahead)
        refuse_without_memory(count * self.block_bytes, "lower offload.ram_slots")
        cpu = torch.device("cpu")
        memory = device_blocks(count, self.format.elements, self.format.storage, cpu)
        self.lock_report: LockReport | None = None
        locked = 0 if registrar is None else self._lock(registrar, memory)
        self._free = deque(_Block(memory[i], i < locked) for i in range(count))
        self._in: dict[tuple[int, int], _Block] = {}  # (layer, expert) -> its slot
        self._to_read: set[tuple[int, int]] = set()  # in a slot, and on the disk so far
        self._area: dict[int, tuple[tuple[int, int], _Block]] = {}
        self.hits = self.reads = 0  # demanded by this forward on the clock, and not on the device

    def _lock(self, registrar: Registrar, memory: torch.Tensor) -> int:
        """How many blocks are locked; what is refused goes a slower way."""
        count, start = len(memory), [memory.data_ptr()]
        counts, registered, refused = lock_layers(
            registrar, start, self.block_bytes, count, CHUNK_BYTES
        )
        weakref.finalize(self, release, registrar, registered)
        locked, size = counts[0] * self.block_bytes, count * self.block_bytes
        self.lock_report = LockReport(locked, size, refused)
        return counts[0]

    # -- what is decided ---------------------------------------------------------------------------

    def begin_forward(self) -> None:
        """One more on the clock."""
        self.cache.begin_forward()
        self.hits = self.reads = 0

    def plan(
        self, layer: int, arrived: Int64Array, areas: Sequence[int], missed: Int64Array
    ) -> None:
        """A layer's demand that had no slot on the device: `arrived` were predicted and are in
        `areas`, `missed` are copied next, in this order."""
        demand = np.concatenate([arrived, missed])
        if not len(demand):
            return
        plan = self.cache.plan(layer, demand[:, None])
        hits = set(plan.hits.tolist())
        self.hits += sum(expert in hits for expert in missed.tolist())
        self.reads += sum(expert not in hits for expert in missed.tolist())
        here = dict(zip(arrived.tolist(), areas, strict=True))
        self._free.extend(self._in.pop((layer, e)) for e in plan.evicted.tolist() if e != NONE)
        for expert, slot in zip(
            plan.misses.tolist(), plan.slots[plan.n_hits :].tolist(), strict=True
        ):
            key = layer, expert
            if slot == NONE:
                continue
            if expert in here:
                of, self._in[key] = self._area.pop(here[expert])
                assert of == key, "what has arrived came through this block"
            else:
                self._in[key] = self._take()
                self._to_read.add(key)

    def holds(self, layer: int, expert: int) -> bool:
        return self.cache.slot_of(layer, expert) != NONE

    def _take(self) -> _Block:
        """The block that has been free for longest."""
        block = self._free.popleft()
        block.before, block.passages = [*block.before, *block.passages], []
        block.before = [passage for passage in block.before if not passage._has_ended()]
        return block

    # -- what is copied ----------------------------------------------------------------------------

    def source(self, layer: int, expert: int) -> Passage:
        """The next demanded copy, on the clock in the order of `plan`. Off the clock it changes no
        residency."""
        key = layer, expert
        if key not in self._in:
            block = self._take()
            self._free.append(block)
            return Passage(block, block.memory, self.disk.source(layer, expert))
        block, read = self._in[key], None
        if key in self._to_read:
            self._to_read.remove(key)
            read = self.disk.source(layer, expert)
        return Passage(block, block.memory, read)

    def piece(self, layer: int, expert: int, area: int, piece: int) -> Passage:
        """One of PIECES parts of what was predicted, on its way into a block of the area."""
        key = layer, expert
        if key in self._in:
            return Passage(self._in[key], self._in[key].memory.chunk(PIECES)[piece], None)
        if piece == 0:
            if area in self._area:  # was dropped, or had no slot
                self._free.append(self._area.pop(area)[1])
            self._area[area] = key, self._take()
        block = self._area[area][1]
        read = self.disk.source(layer, expert).chunk(PIECES)[piece]
        return Passage(block, block.memory.chunk(PIECES)[piece], read)

    def is_locked(self, layer: int, expert: int) -> bool:
        """Each passage knows it of its block."""
        return False

    def block(self, layer: int, expert: int) -> torch.Tensor:
        """[format.elements], now."""
        if (layer, expert) not in self._in:
            return self.disk.block(layer, expert)
        block = self._in[layer, expert]
        for passage in block.passages:
            passage._started.result()
        return block.memory

    # -- kept with a request, put back by probes and resumed runs ----------------------------------

    def state(self) -> dict[str, Int64Array]:
        return {STATE + name: array for name, array in self.cache.state().items()}

    def restore(self, residency: dict[str, Int64Array]) -> None:
        """Reads what RAM now lacks. Raises SpecfitError for a residency without that of RAM."""
        own = {n.removeprefix(STATE): a for n, a in residency.items() if n.startswith(STATE)}
        self.cache.load_state(own)
        layers, experts = np.nonzero(self.cache.resident_mask())
        wanted = dict.fromkeys(zip(layers.tolist(), experts.tolist(), strict=True))
        for key in [key for key in self._in if key not in wanted]:
            self._free.append(self._in.pop(key))
        for layer, expert in [key for key in wanted if key not in self._in]:
            block = self._in[layer, expert] = self._take()
            Passage(block, block.memory, self.disk.source(layer, expert)).carry_out(_nowhere)


def ram_blocks(layers: int, slots: int, spare: int) -> int:
    """All blocks of RAM: `slots` of each layer, and those through which experts pass."""
    return layers * slots + spare


def _nowhere(here: torch.Tensor) -> None:
    """It stays where it is."""
