"""The layer-major passes give what position by position gives, except at near-ties, counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from specfit.models.routes.atlas import AtlasRoutes
from specfit.storage.recording.requests import RecordedRequest
from specfit.workflows.recording import target_teacher
from specfit.workflows.recording.drafter_teacher import TeacherDrafter
from specfit.workflows.recording.target_teacher import TeacherTarget
from tests.fakes.table_model import walk
from tests.fakes.tiny_model import CPU, EXPERTS, LAYERS, Pair

INDICES, NEW_TOKENS = (0, 1, 2), 20
UNITS = 2  # of 2**-20, by which a path probability may differ in the last bits


@dataclass(frozen=True)
class Difference:
    """Between a walked and a taught recording of one request."""

    tokens: int  # drafted
    parents: int
    routes: int  # expert ids, as sets
    units: int  # largest difference of a path probability


def taught(pair: Pair, slots: int, walked: list[RecordedRequest]):  # type: ignore[no-untyped-def]
    target = pair.target(slots)
    aux = pair.head.config.aux_layer_ids
    layers = TeacherTarget(pair.loaded, target.engine, aux, target.cache_argument, CPU)
    texts = [np.concatenate([r.request.prompt_ids, r.output_ids[:-1]]) for r in walked]  # type: ignore[union-attr, index]
    passes = layers.text(texts)
    drafter = TeacherDrafter(pair.head, 5, 2, CPU)
    drafted = [
        drafter.pools(text, done.features, one.positions)
        for text, done, one in zip(texts, passes, walked, strict=True)
    ]
    before = target.residency()
    atlases = layers.pools(passes, [trees for trees, _ in drafted])
    assert all(np.array_equal(before[name], array) for name, array in target.residency().items())
    return passes, drafted, atlases


@pytest.fixture(scope="module")
def walked(pair: Pair) -> list[RecordedRequest]:
    target = pair.target(8)
    found = []
    for index in INDICES:
        request = pair.request(index, NEW_TOKENS)
        routes = AtlasRoutes(target)
        found.append(
            walk(
                request,
                target,
                pair.drafter(),
                routes,
                pair.clock(),
                lambda: np.stack(target.engine.routes, axis=1),
            )
        )
    return found


def differences(one: RecordedRequest, trees, atlases) -> Difference:  # type: ignore[no-untyped-def]
    tokens = parents = routes = units = 0
    assert one.pools is not None
    for position, (tree, atlas) in enumerate(zip(trees, atlases, strict=True)):
        known = one.pools.tree(position)
        tokens += int((known.tokens != tree.tokens).sum())
        parents += int((known.parents != tree.parents).sum())
        units = max(units, int(np.abs(known.path_probs - tree.path_probs).max()))
        rows = np.concatenate([atlas.root[None], atlas.nodes])
        routes += int((np.sort(rows, -1) != np.sort(one.pools.atlas(position), -1)).sum())
    return Difference(tokens, parents, routes, units)


@pytest.mark.parametrize("rows", [target_teacher.ROWS, 40, 1])
def test_equal_to_position_by_position(pair: Pair, walked, rows, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Groups of rows and of nodes, of whatever size, change nothing."""
    monkeypatch.setattr(target_teacher, "ROWS", rows)
    monkeypatch.setattr(target_teacher, "NODES", rows)
    passes, drafted, atlases = taught(pair, 8, walked)
    for one, done, (trees, _), routes in zip(walked, passes, drafted, atlases, strict=True):
        found = differences(one, trees, routes)
        assert (found.tokens, found.parents, found.routes) == (0, 0, 0), "a near-tie: see margins"
        assert found.units <= UNITS
        prompt = len(one.request.prompt_ids)
        assert np.array_equal(done.routes[:prompt], one.prompt_routes)
        assert np.array_equal(done.said[prompt - 1 :], one.output_ids)
        assert done.routes.shape[1:] == (LAYERS, one.prompt_routes.shape[2])
        assert done.routes.max() < EXPERTS


@pytest.mark.parametrize("slots", [0, EXPERTS])
def test_slots_do_not_matter(pair: Pair, walked, slots: int) -> None:  # type: ignore[no-untyped-def]
    one = taught(pair, slots, walked[:1])[2][0]
    other = taught(pair, 8, walked[:1])[2][0]
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a.nodes, b.nodes) and np.array_equal(a.root, b.root)


def test_an_expert_is_streamed_once_a_layer_and_pass(pair: Pair, walked, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """However many requests, positions and nodes there are."""
    seen: list[tuple[int, int]] = []
    block = pair.loaded.store.block
    monkeypatch.setattr(
        pair.loaded.store, "block", lambda layer, e: seen.append((layer, e)) or block(layer, e)
    )
    taught(pair, 0, walked)
    assert max(seen.count(pair_) for pair_ in set(seen)) <= 2  # the text pass and the pools' pass


def test_features_are_of_each_expanded_node(pair: Pair, walked) -> None:  # type: ignore[no-untyped-def]
    _, drafted, _ = taught(pair, 8, walked[:1])
    trees, features = drafted[0]
    for tree, rows in zip(trees, features, strict=True):
        assert rows.shape == (len(np.unique(tree.parents)), pair.head.config.hidden_size)
        assert rows.dtype == pair.loaded.format.dtype, "rounded only where they are kept"
