"""The layer loop equals plain transformers; neither residency nor the atlas changes a bit of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from specfit.base.types import DraftTree, Selection
from specfit.models.routes.atlas import AtlasRoutes
from specfit.models.target.offloaded import OffloadedTarget
from tests.fakes.tiny_model import EXPERTS, LAYERS, TOP_K, Pair

ABSOLUTE = 2e-4  # activations reach a few dozen
SLOTS = (0, 1, 3, EXPERTS // 2, EXPERTS)

# Two levels of a lopsided tree and one node below: 0, 1 | 2, 3 under 0, 4 under 1 | 5 under 3.
TREE = DraftTree(
    tokens=np.array([20, 150, 33, 7, 20, 88]),
    parents=np.array([-1, -1, 0, 0, 1, 3]),
    depths=np.array([1, 1, 2, 2, 2, 3]),
    path_probs=np.array([6, 5, 4, 3, 2, 1]),
)
SELECTION = Selection((0, 1, 3, 4, 5))
ROOT_TOKEN = 42


class Tap:
    """Everything the layer loop gives, on the clock and off it: hidden [T, H], logits [T, V]."""

    def __init__(self, target: OffloadedTarget, pair: Pair) -> None:
        self.hidden: list[torch.Tensor] = []
        self.features: list[torch.Tensor] = []
        inner, model = target._forward, pair.loaded.model

        def forward(*arguments: Any) -> Any:
            hidden, features = inner(*arguments)
            self.hidden.append(hidden)
            self.features.append(features)
            return hidden, features

        target._forward = forward  # type: ignore[method-assign]
        self._read_out = lambda hidden: model.lm_head(model.model.norm(hidden))

    @property
    def logits(self) -> torch.Tensor:
        return self._read_out(torch.cat(self.hidden))


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, atol=ABSOLUTE, rtol=1e-4)


def prompt(pair: Pair, length: int) -> np.ndarray:
    return np.concatenate(pair.prompts)[:length]


# -- equal to plain transformers -------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 2, 8, 40])
@pytest.mark.parametrize("chunk", [1, 3, 7, None])
def test_prefill_equals_plain_transformers(pair: Pair, length: int, chunk: int | None) -> None:
    ids, target = prompt(pair, length), pair.target(slots=5, chunk=chunk)
    tap = Tap(target, pair)
    filled = target.prefill(ids)
    logits = pair.plain_forward(ids).logits[0]
    close(tap.logits, logits)
    close(filled.features, pair.plain_features(ids))
    assert filled.token == int(logits[-1].argmax())
    assert target.length == length
    assert len(filled.traces) == -(-length // (chunk or length))
    assert sum(trace.billed_rows for trace in filled.traces) == length


def test_features_are_the_hidden_states_entering_the_named_layers(pair: Pair) -> None:
    ids = prompt(pair, 12)
    features = pair.target(slots=EXPERTS).prefill(ids).features
    states = pair.plain_forward(ids).hidden_states
    layers = pair.head.config.aux_layer_ids
    for part, layer in zip(features.chunk(len(layers), dim=-1), layers, strict=True):
        close(part, states[layer][0])
        for other in set(range(LAYERS)) - {layer}:
            assert not torch.allclose(part, states[other][0], atol=0.01), "of another layer"


@pytest.mark.parametrize("slots", [0, 3, EXPERTS])
def test_a_verified_tree_equals_each_path_run_alone(pair: Pair, slots: int) -> None:
    ids, target = prompt(pair, 11), pair.target(slots)
    target.prefill(ids)
    tap = Tap(target, pair)
    verified = target.verify(ROOT_TOKEN, TREE, SELECTION)
    for row, node in enumerate((-1, *SELECTION.nodes)):
        path = [ROOT_TOKEN, *TREE.tokens[list(TREE.path(node))].tolist()]
        text = [*ids.tolist(), *path]
        logits = pair.plain_forward(text).logits[0, -1]
        close(tap.logits[row], logits)
        close(verified.features[row], pair.plain_features(text)[-1])
        assert int(verified.tokens[row]) == int(logits.argmax())
    assert verified.trace.billed_rows == len(SELECTION.nodes)


# -- residency changes no bit ----------------------------------------------------------------------


def story(pair: Pair, target: OffloadedTarget) -> Iterator[torch.Tensor]:
    """Hidden states of a prefill and three cycles, one with a wide tree."""
    tap = Tap(target, pair)
    target.begin()
    target.prefill(prompt(pair, 30))
    for root, selection, kept in (
        (ROOT_TOKEN, SELECTION, [0, 1, 3]),
        (5, Selection(()), [0]),
        (150, Selection((0, 2)), [0]),
    ):
        target.verify(root, TREE, selection)
        target.keep(kept)
    yield from tap.hidden


@pytest.fixture(scope="module")
def reference(pair: Pair) -> list[torch.Tensor]:
    return list(story(pair, pair.target(EXPERTS)))


@pytest.mark.parametrize("in_flight", [1, 2, 4])
@pytest.mark.parametrize("slots", SLOTS)
def test_outputs_are_bit_identical_for_every_slot_count(
    pair: Pair, reference: list[torch.Tensor], slots: int, in_flight: int
) -> None:
    target = pair.target(slots, in_flight)
    for again in range(2):  # the second time from a warm cache
        for step, (ours, theirs) in enumerate(zip(story(pair, target), reference, strict=True)):
            assert torch.equal(ours, theirs), f"forward {step} of round {again}"


def test_no_slots_transfer_what_clearing_the_cache_before_each_forward_does(pair: Pair) -> None:
    def misses(target: OffloadedTarget, clear: bool) -> list[list[int]]:
        traces = list(target.prefill(prompt(pair, 9)).traces)
        for root in (42, 5, 150):
            if clear:
                target.engine.cache.clear()
            traces.append(target.verify(root, TREE, SELECTION).trace)
            target.keep([0, 1])
        assert all(int(trace.hits.sum()) == 0 for trace in traces)
        return [trace.misses.tolist() for trace in traces]

    streamed = misses(pair.target(slots=0), clear=False)
    assert streamed == misses(pair.target(slots=EXPERTS), clear=True)
    assert misses_with_a_cache(pair) < sum(map(sum, streamed)), "a cache would have hit"


def misses_with_a_cache(pair: Pair) -> int:
    target = pair.target(slots=EXPERTS)
    traces = list(target.prefill(prompt(pair, 9)).traces)
    for root in (42, 5, 150):
        traces.append(target.verify(root, TREE, SELECTION).trace)
        target.keep([0, 1])
    return sum(int(trace.misses.sum()) for trace in traces)


@pytest.mark.parametrize("slots", [3, EXPERTS // 2])
def test_a_restored_residency_has_its_weights_in_its_slots(pair: Pair, slots: int) -> None:
    target = pair.target(slots)
    target.prefill(prompt(pair, 9))
    saved = target.residency()
    tap = Tap(target, pair)
    first = target.verify(ROOT_TOKEN, TREE, SELECTION)
    for root in (3, 77, 120):  # other experts take the slots
        target.verify(root, TREE, SELECTION)
    target.restore(saved)
    assert all(np.array_equal(saved[name], now) for name, now in target.residency().items())
    again = target.verify(ROOT_TOKEN, TREE, SELECTION)
    assert torch.equal(tap.hidden[0], tap.hidden[-1])
    assert first.trace.hits.tolist() == again.trace.hits.tolist()
    assert first.trace.misses.tolist() == again.trace.misses.tolist()
    assert int(again.trace.hits.sum()) > 0, "the test needs residents that are read"


def test_a_residency_moves_to_a_fresh_engine_with_its_weights(pair: Pair) -> None:
    """How a killed run goes on: ids and recency from disk, weights from the store."""
    worn = pair.target(slots=6)
    worn.prefill(prompt(pair, 20))
    saved, tap = worn.residency(), Tap(worn, pair)
    worn.begin()
    there = worn.prefill(prompt(pair, 5)).traces[0]
    fresh = pair.target(slots=6)
    for block in fresh.engine._slots:
        block.fill_(float("nan"))
    fresh.restore(saved)
    fresh_tap = Tap(fresh, pair)
    here = fresh.prefill(prompt(pair, 5)).traces[0]
    assert torch.equal(tap.hidden[0], fresh_tap.hidden[0])
    assert here.hits.tolist() == there.hits.tolist() and int(here.hits.sum()) > 0


# -- KV cache --------------------------------------------------------------------------------------


def test_kept_rows_continue_as_if_the_path_had_been_the_text(pair: Pair) -> None:
    ids, target = prompt(pair, 11), pair.target(slots=EXPERTS)
    target.prefill(ids)
    target.verify(ROOT_TOKEN, TREE, SELECTION)
    target.keep([0, 1, 3, 5])  # root, nodes 0, 3 and 5
    assert target.length == 15
    tap = Tap(target, pair)
    target.verify(9, DraftTree.empty(), Selection(()))
    text = [*ids.tolist(), ROOT_TOKEN, 20, 7, 88, 9]
    close(tap.logits[0], pair.plain_forward(text).logits[0, -1])


def test_a_truncated_cache_forgets(pair: Pair) -> None:
    ids, target = prompt(pair, 11), pair.target(slots=EXPERTS)
    target.prefill(ids)
    tap = Tap(target, pair)
    for root in (ROOT_TOKEN, 9):
        target.verify(root, TREE, SELECTION)
        target.keep([0, 1, 3])
    target.truncate(11)
    target.verify(ROOT_TOKEN, TREE, SELECTION)
    assert torch.equal(tap.hidden[0], tap.hidden[2])
    assert not torch.equal(tap.hidden[0], tap.hidden[1])


def test_the_cache_outgrows_its_first_buffer(pair: Pair) -> None:
    """More than 256 rows: what was kept before the buffer grew is still there."""
    ids = np.resize(np.concatenate(pair.prompts), 300)
    target = pair.target(slots=EXPERTS, chunk=90)
    tap = Tap(target, pair)
    target.prefill(ids)
    close(tap.logits, pair.plain_forward(ids).logits[0])


# -- the atlas -------------------------------------------------------------------------------------


def upto(levels: int) -> DraftTree:
    n = int(np.searchsorted(TREE.depths, levels, side="right"))
    return DraftTree(TREE.tokens[:n], TREE.parents[:n], TREE.depths[:n], TREE.path_probs[:n])


def observe_levels(target: OffloadedTarget) -> Any:
    """As the decoder reads an atlas: after each level, the new nodes only."""
    atlas = AtlasRoutes(target)
    for levels in (1, 2, 3):
        routes = atlas.read(ROOT_TOKEN, upto(levels), 0)
    return routes


@pytest.mark.parametrize("slots", [0, 4, EXPERTS])
def test_the_atlas_names_what_the_forward_routes_to_level_by_level_or_at_once(
    pair: Pair, slots: int
) -> None:
    target = pair.target(slots)
    target.prefill(prompt(pair, 11))
    stepwise, at_once = observe_levels(target), target.observe(ROOT_TOKEN, TREE, seen=0)
    verified = target.verify(ROOT_TOKEN, TREE, Selection(tuple(range(len(TREE)))))
    assert verified.routes.shape == (1 + len(TREE), LAYERS, TOP_K)
    for routes in (stepwise, at_once):
        seen = np.concatenate([routes.root[None], routes.nodes])
        assert np.array_equal(np.sort(seen), np.sort(verified.routes))
    rows = np.sort(verified.routes).reshape(1 + len(TREE), -1)
    assert len(np.unique(rows, axis=0)) == len(rows), "the rows can be told apart"


@pytest.mark.parametrize("slots", [0, 4])
def test_observing_changes_no_residency_no_counter_and_no_length(pair: Pair, slots: int) -> None:
    target = pair.target(slots)
    target.prefill(prompt(pair, 11))
    target.verify(ROOT_TOKEN, TREE, SELECTION)
    target.keep([0, 1])
    before, length = target.residency(), target.length
    weights = [block.clone() for block in target.engine._slots]
    observe_levels(target)
    assert target.length == length
    assert all(np.array_equal(before[name], now) for name, now in target.residency().items())
    assert all(map(torch.equal, weights, target.engine._slots))


@pytest.mark.parametrize("slots", [0, 4])
def test_an_atlas_in_between_changes_no_trace_and_no_bit(pair: Pair, slots: int) -> None:
    """Runs the same cycles without an atlas, with one, and with a poisoned one."""
    plain = cycles(pair, slots, observe=False, poison=False)
    observed = cycles(pair, slots, observe=True, poison=False)
    poisoned = cycles(pair, slots, observe=True, poison=True)
    assert plain == observed == poisoned


def cycles(pair: Pair, slots: int, observe: bool, poison: bool) -> list[Any]:
    target = pair.target(slots)
    tap, seen = Tap(target, pair), []
    target.prefill(prompt(pair, 11))
    for root, kept in ((ROOT_TOKEN, [0, 1, 3]), (5, [0]), (60, [0, 2])):
        if observe:
            observe_levels(target)
        if poison:
            poison_what_an_atlas_wrote(target)
        verified = target.verify(root, TREE, SELECTION)
        target.keep(kept)
        trace = verified.trace
        counts = [trace.hits, trace.misses, trace.evictions, trace.wait_for]
        seen.append([array.tolist() for array in (*counts, verified.routes, verified.tokens)])
        seen.append(tap.hidden[-1].tolist())  # floats compare exactly, and NaN equals nothing
        seen.append(verified.features.tolist())
    return seen


@torch.inference_mode()
def poison_what_an_atlas_wrote(target: OffloadedTarget) -> None:
    assert target._kv._stored is not None
    for buffer in target._kv._stored.flatten(0, 1).unsqueeze(1):
        assert bool(buffer[:, :, target.length : target.length + 1 + len(TREE)].any()), "scratch"
        buffer[:, :, target.length :] = float("nan")
    target.engine._staging.fill_(float("nan"))
