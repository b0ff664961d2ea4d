"""The asynchronous engine on a device that delays and reorders: no block is read early or lost.

A block is poison (NaN) while its copy travels, and results must equal the synchronous engine's to
the last bit, so a read before arrival and an overwrite before the last use both fail.
"""

from __future__ import annotations

import gc
import inspect
import sys
import threading
import types
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from specfit.base.types import PROBABILITY_ONE, DraftTree, ForwardTrace, Routes, Selection
from specfit.experts import cuda_copies
from specfit.experts.arithmetic import LoopArithmetic
from specfit.experts.cache import ExpertCache
from specfit.experts.copies import CopyEngine, CpuCopyEngine
from specfit.experts.cuda_copies import COMPUTE, StreamedCopyEngine
from specfit.experts.engine import ExpertEngine
from specfit.experts.expert_format import plain_format
from specfit.experts.host_weights import ExpertStore, HostStore
from specfit.experts.policy_cache import Movement, MovingCache
from specfit.experts.prefetch import Prefetcher
from specfit.experts.queued_streams import QueuedStreams
from specfit.hardware.idle_link import IdleLink
from tests.experts.simulated import DeferredArithmetic, Device

CPU = torch.device("cpu")
LAYERS, EXPERTS, TOP_K, HIDDEN, INNER = 2, 12, 3, 8, 4
SEEDS = range(4)
FAVOURS = (0.02, 1.0, 50.0)  # copies long before compute, evenly, compute long before copies
ROWS = (1, 5, 1, 9, 2)


@pytest.fixture(scope="module")
def store() -> ExpertStore:
    torch.manual_seed(0)
    made = ExpertStore(LAYERS, EXPERTS, plain_format(HIDDEN, INNER, torch.float32))
    for layer in range(LAYERS):
        for expert in range(EXPERTS):
            gate, up = torch.randn(2, INNER, HIDDEN)
            made.write(layer, expert, (gate, up, torch.randn(HIDDEN, INNER)))
    made.freeze()
    return made


def engine(
    store: HostStore,
    slots: int,
    copies: CopyEngine,
    device: Device | None = None,
    movement: Movement | None = None,
) -> ExpertEngine:
    shape = LAYERS, EXPERTS, slots, copies.in_flight + 1
    cache = ExpertCache(*shape) if movement is None else MovingCache(*shape, movement)
    loop = LoopArithmetic(torch.nn.functional.silu)
    arithmetic = loop if device is None else DeferredArithmetic(device, loop)
    made = ExpertEngine(store, cache, copies, arithmetic, CPU)
    for block in (*made._slots, made._staging, made._area):
        block.fill_(float("nan"))
    return made


def story(engine: ExpertEngine) -> Iterator[torch.Tensor]:
    """Layer outputs of a few forwards, on the clock and off it; the inputs are always the same."""
    rng = np.random.default_rng(3)
    for number, rows in enumerate(ROWS):
        on_clock = number != 2
        engine.begin_forward(on_clock, whole=True)
        for layer in range(LAYERS):
            ids = np.stack([rng.permutation(EXPERTS)[:TOP_K] for _ in range(rows)])
            hidden = torch.from_numpy(rng.standard_normal((rows, HIDDEN), dtype=np.float32))
            weights = torch.from_numpy(rng.random((rows, TOP_K), dtype=np.float32))
            yield engine.run(layer, hidden, torch.from_numpy(ids), weights)
        if on_clock:
            engine.end_forward(rows, is_prefill=False)


@pytest.fixture(scope="module")
def reference(store: ExpertStore) -> list[torch.Tensor]:
    return list(story(engine(store, EXPERTS, CpuCopyEngine(2))))


def run(store: ExpertStore, slots: int, in_flight: int, device: Device) -> list[torch.Tensor]:
    copies = StreamedCopyEngine(device, in_flight)
    return list(story(engine(store, slots, copies, device)))


@pytest.mark.parametrize("in_flight", [1, 2, 5])
@pytest.mark.parametrize("slots", [0, 1, 4, EXPERTS])
def test_no_schedule_of_the_device_changes_a_bit(
    store: ExpertStore, reference: list[torch.Tensor], slots: int, in_flight: int
) -> None:
    for seed in SEEDS:
        for favour in FAVOURS:
            device = Device(seed, favour)
            for ours, theirs in zip(run(store, slots, in_flight, device), reference, strict=True):
                assert torch.equal(ours, theirs), f"seed {seed}, favour {favour}"
            assert device.most_going <= in_flight
            assert device.copies > 0


def test_several_copies_do_travel_at_once(store: ExpertStore) -> None:
    assert max(_most_going(store, 3, seed) for seed in SEEDS) == 3
    assert {_most_going(store, 1, seed) for seed in SEEDS} == {1}


def _most_going(store: ExpertStore, in_flight: int, seed: int) -> int:
    device = Device(seed, favour=0.02)
    run(store, 4, in_flight, device)
    return device.most_going


def test_copies_start_in_load_order_within_their_streams(store: ExpertStore) -> None:
    device = Device(1)
    run(store, 0, 2, device)
    for stream in (0, 1):
        started = [n for what, n in device.log if what == "start" and n % 2 == stream]
        assert started == sorted(started)
    ends = [n for what, n in device.log if what == "end"]
    assert sorted(ends) == list(range(device.copies))
    assert ends != sorted(ends), "the schedule never let two copies overtake"


def test_hits_run_while_misses_travel(store: ExpertStore) -> None:
    """Of a layer with both, the hits are computed though no copy ever gets a turn before them."""
    device = Device(0, favour=1e9)
    made = engine(store, EXPERTS, StreamedCopyEngine(device, 2), device)
    ran: list[int] = []
    loop_run = made.arithmetic._loop.run  # type: ignore[attr-defined]

    def spy(storage: torch.Tensor, first: int, last: int, work: object) -> None:
        ran.append(device.log.count(("end", 0)) + sum(what == "end" for what, _ in device.log))
        loop_run(storage, first, last, work)

    made.arithmetic._loop.run = spy  # type: ignore[attr-defined]
    hidden, weights = torch.randn(1, HIDDEN), torch.rand(1, TOP_K)
    for ids in ([0, 1, 2], [1, 2, 7]):
        made.begin_forward(on_clock=True)
        ran.clear()
        device.log.clear()
        made.run(0, hidden, torch.tensor([ids]), weights)
    assert ran[:2] == [0, 0], "two hits, before the copy of the miss has ended"
    assert ran[2] > 0, "the miss, after it"


def test_the_host_waits_for_the_device_at_the_end_of_a_forward_only(store: ExpertStore) -> None:
    device = Device(0)
    made = engine(store, 4, StreamedCopyEngine(device, 2), device)
    made.begin_forward(on_clock=True)
    ids = torch.tensor([[0, 1, 2], [3, 4, 5], [6, 7, 8]])
    for layer in range(LAYERS):
        made.run(layer, torch.randn(3, HIDDEN), ids, torch.rand(3, TOP_K))
        assert device.host_waits == 0
    trace = made.end_forward(3, is_prefill=False)
    assert device.host_waits > 0
    assert trace.transfer_wait_ns > 0 and made.copies.link.busy_ns > 0
    assert made.copies.link.moved_bytes == 18 * store.block_bytes


def test_waits_of_an_off_clock_forward_are_not_counted(store: ExpertStore) -> None:
    device = Device(0)
    made = engine(store, 4, StreamedCopyEngine(device, 2), device)
    ids = torch.tensor([[0, 1, 2]])
    arguments = torch.randn(1, HIDDEN), ids, torch.rand(1, TOP_K)
    made.begin_forward(on_clock=True)
    made.run(0, *arguments)
    made.run(1, *arguments)
    made.end_forward(1, is_prefill=False)
    made.begin_forward(on_clock=False, whole=True)
    made.run(0, arguments[0], torch.tensor([[7, 8, 9]]), arguments[2])
    made.begin_forward(on_clock=True)
    made.run(0, *arguments)
    made.run(1, *arguments)
    assert made.end_forward(1, is_prefill=False).transfer_wait_ns == 0, "all were hits"


# -- the checks above see what they are for --------------------------------------------------------


def broken(old: str, new: str) -> type:
    """StreamedCopyEngine with one line of its source changed."""
    source = inspect.getsource(cuda_copies)
    assert source.count(old) == 1, old
    module = types.ModuleType("broken")
    sys.modules["broken"] = module
    exec(compile(source.replace(old, new), "broken", "exec"), module.__dict__)
    return module.StreamedCopyEngine  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        if after is not None:\n            self._streams.wait(stream, after)\n", ""),
        ("        self._streams.wait(COMPUTE, copy.end)\n", ""),
        (
            "self._streams.wait(COMPUTE, copy.end)",
            "self._streams.wait(COMPUTE, self._layers[-1].begin)",
        ),
    ],
    ids=["victim", "arrival", "start for arrival"],
)
def test_an_engine_that_does_not_wait_is_caught(
    store: ExpertStore, reference: list[torch.Tensor], old: str, new: str
) -> None:
    engine_class = broken(old, new)
    wrong = 0
    for seed in SEEDS:
        device = Device(seed)
        made = engine(store, 1, engine_class(device, 2), device)
        pairs = zip(story(made), reference, strict=True)
        wrong += not all(torch.equal(ours, theirs) for ours, theirs in pairs)
    assert wrong == len(SEEDS)


def test_more_copies_than_allowed_are_caught(store: ExpertStore) -> None:
    engine_class = broken("self._submitted % self.in_flight", "self._submitted % 4")
    most = 0
    for seed in SEEDS:
        device = Device(seed, favour=0.02)
        list(story(engine(store, EXPERTS, engine_class(device, 2), device)))
        most = max(most, device.most_going)
    assert most > 2


# -- copies that are not demanded yet --------------------------------------------------------------


def foretold(engine: ExpertEngine, rng: np.random.Generator) -> None:
    """A cycle's prediction: right for some rows of the story, wrong for others."""
    ahead = engine.cache.prefetcher
    assert ahead is not None
    root = np.stack([rng.permutation(EXPERTS)[:TOP_K] for _ in range(LAYERS)])
    tree = DraftTree.empty().grown(np.array([1]), np.array([-1]), np.array([PROBABILITY_ONE // 2]))
    nodes = np.stack([rng.permutation(EXPERTS)[:TOP_K] for _ in range(LAYERS)])[None]
    ahead.on_prediction(tree, Routes(root, nodes))
    for phase in ("level", "route", "select"):
        ahead.on_idle(phase)
    ahead.on_prediction(tree, Routes(root, nodes), Selection((0,)))


def prefetching_story(made: ExpertEngine) -> Iterator[torch.Tensor]:
    """`story` with a prediction before every forward on the clock."""
    begin, rng = made.begin_forward, np.random.default_rng(9)

    def begin_forward(on_clock: bool, whole: bool = False) -> None:
        if on_clock:
            foretold(made, rng)
        begin(on_clock, whole)

    made.begin_forward = begin_forward  # type: ignore[method-assign]
    return story(made)


@pytest.mark.parametrize("bypass", [False, True])
@pytest.mark.parametrize("slots", [0, 2, 6, EXPERTS])
@pytest.mark.parametrize("seed", SEEDS)
def test_prefetched_blocks_are_never_read_early(
    store: ExpertStore, reference: list[torch.Tensor], seed: int, slots: int, bypass: bool
) -> None:
    """Under every order the device may choose, results are those without prefetching."""
    link = IdleLink(10, 1, 1, 30, 5, 20, 25.0, 0.0, 0.0)
    used = 0
    for favour in FAVOURS:
        device = Device(seed, favour)
        ahead = Prefetcher("layer", 4, LAYERS, EXPERTS, link)
        copies = StreamedCopyEngine(device, 2)
        made = engine(store, slots, copies, device, Movement(bypass=bypass, prefetcher=ahead))
        traces = []
        end = made.end_forward

        def end_forward(rows: int, is_prefill: bool) -> ForwardTrace:
            traces.append(end(rows, is_prefill))  # noqa: B023
            return traces[-1]  # noqa: B023

        made.end_forward = end_forward  # type: ignore[method-assign]
        results = list(prefetching_story(made))
        assert all(map(torch.equal, results, reference))
        used += sum(trace.used for trace in traces)
    assert used > 0 or slots == EXPERTS, "some predictions come true, or nothing is shown"


def test_a_block_that_work_may_still_read_is_overwritten_after_it() -> None:
    """The device would rather copy; what was handed to the compute lane before runs first."""
    for seed in range(20):
        device, block, read = Device(seed, 0.02), torch.ones(4), []
        copies = StreamedCopyEngine(device, 2)
        device.push(COMPUTE, lambda: read.append(block.clone()))  # noqa: B023
        copies.begin_layer(waits=1, runs=1)
        mark = copies.bring(torch.full((4,), 2.0), block)
        copies.wait_brought(mark)
        device.push(COMPUTE, lambda: read.append(block.clone()))  # noqa: B023
        device.synchronise()
        copies.end_layer()
        copies.drain()
        assert [r.tolist() for r in read] == [[1.0] * 4, [2.0] * 4]
        assert copies.link.moved_bytes == 16 and copies.wait_ns >= 0


# -- what the host spends on it ----------------------------------------------------------------


class Counting:
    """`Streams` that count the calls CUDA would be asked."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.records = self.elapsed = 0

    def record(self, stream: int) -> object:
        self.records += 1
        return self._device.record(stream)

    def elapsed_ns(self, begin: Any, end: Any) -> int:
        self.elapsed += 1
        return self._device.elapsed_ns(begin, end)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)


def test_the_timing_of_a_layer_does_not_grow_with_its_misses(store: ExpertStore) -> None:
    """Beside the one event per copy that hands it over: four records and five questions a layer."""
    for misses in (3, 9):
        streams = Counting(Device(0))
        made = engine(store, 0, StreamedCopyEngine(streams, 2), streams._device)
        ids = torch.arange(misses).view(-1, TOP_K)
        made.begin_forward(on_clock=True)
        for layer in range(LAYERS):
            arguments = torch.randn(len(ids), HIDDEN), ids, torch.rand(len(ids), TOP_K)
            made.run(layer, *arguments)
        made.end_forward(len(ids), is_prefill=False)
        # With no slot every copy into staging also waits for a mark of the run before it.
        marks = LAYERS * max(0, misses - 3)
        assert streams.records <= LAYERS * (misses + 4) + marks
        assert streams.elapsed <= LAYERS * 5


def test_runs_between_two_arrivals_are_not_waiting() -> None:
    """By hand: two copies end at 10 and 20, each run takes 4, so the lane idles 10 and then 6."""
    times = {"from": 0, "arrived": 20, "ends": 24}
    layer = cuda_copies._Layer("begin", 0, 2, [], "from", "arrived", "ends")
    assert layer.wait_ns(lambda begin, end: times[end] - times[begin]) == 16


def test_the_index_table_goes_up_before_the_first_copy(store: ExpertStore) -> None:
    device, order = Device(0), []
    made = engine(store, 0, StreamedCopyEngine(device, 2), device)
    upload, copy = made._upload, device.copy
    made._upload = lambda values: order.append("table") or upload(values)  # type: ignore
    device.copy = lambda *a: order.append("block") or copy(*a)  # type: ignore
    made.begin_forward(on_clock=True)
    made.run(0, torch.randn(1, HIDDEN), torch.tensor([[0, 1, 2]]), torch.rand(1, TOP_K))
    assert order[0] == "table" and "block" in order


def test_no_border_waits_for_what_was_brought_in(store: ExpertStore) -> None:
    """A block that travels when a forward begins goes on travelling, and counts once it is here."""
    device = Device(0, favour=1e9)
    copies = StreamedCopyEngine(device, 2)
    block = torch.zeros(4)
    mark = copies.bring(torch.ones(4), block)
    copies.drain()
    assert mark.passed_at is None and device.host_waits == 0 and copies.link.moved_bytes == 0
    while mark.passed_at is None:
        device.step()
    copies.drain()
    assert copies.link.moved_bytes == 16 and copies.link.busy_ns > 0


def test_a_phase_ends_with_the_compute_stream_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from specfit.experts.cuda_streams import border

    waited: list[str] = []
    monkeypatch.setattr(
        torch.cuda,
        "current_stream",
        lambda device: types.SimpleNamespace(synchronize=lambda: waited.append("compute")),
    )
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: waited.append("all"))
    border(torch.device("cuda"))()
    assert waited == ["compute"]


# -- blocks that are not page-locked ----------------------------------------------------------


@pytest.mark.parametrize("slots", [0, 4, EXPERTS])
def test_a_thread_that_fills_the_streams_changes_no_bit(
    store: ExpertStore, reference: list[torch.Tensor], slots: int
) -> None:
    for seed in SEEDS:
        device = Locked(Device(seed))
        made = engine(store, slots, StreamedCopyEngine(QueuedStreams(device), 2), device)
        assert all(map(torch.equal, story(made), reference))
        assert device.copies > 0


class Locked:
    """The simulated device for two threads: one call at a time."""

    def __init__(self, device: Device) -> None:
        self._device, self._lock = device, threading.RLock()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._device, name)
        if not callable(found):
            return found

        def call(*arguments: Any) -> Any:
            with self._lock:
                return found(*arguments)

        return call


def test_a_slow_bounce_copy_does_not_hold_up_the_thread_that_enqueues() -> None:
    """The copy has not begun when `copy` returns; the lane that needs it waits for it."""
    gate, device = threading.Event(), Device(0)
    slow, source, block = device.copy, torch.ones(4), torch.zeros(4)

    def copy(*arguments: Any) -> None:
        gate.wait(10)
        slow(*arguments)

    device.copy = copy  # type: ignore[method-assign]
    copies = StreamedCopyEngine(QueuedStreams(device), 2)
    copies.begin_layer(waits=1, runs=1)
    copies.submit(source, block, locked=False)
    assert device.copies == 0, "submit came back before the bounce copy"
    gate.set()
    copies.wait_oldest()
    device.synchronise()
    copies.drain()
    assert block.tolist() == [1.0] * 4


# -- an engine's memory ---------------------------------------------------------------------------


def test_the_slots_of_an_engine_that_prefetched_are_gone_with_it(store: ExpertStore) -> None:
    """Without the collector of cycles: the next job allocates before that would run."""
    link = IdleLink(10, 1, 1, 30, 5, 20, 25.0, 0.0, 0.0)
    ahead = Prefetcher("layer", 4, LAYERS, EXPERTS, link)
    made = engine(store, 4, CpuCopyEngine(2), None, Movement(prefetcher=ahead))
    list(prefetching_story(made))
    del made.begin_forward  # the story's own hook holds its engine
    slots = weakref.ref(made._slots[0])
    gc.disable()
    try:
        del made
        assert slots() is None
    finally:
        gc.enable()
