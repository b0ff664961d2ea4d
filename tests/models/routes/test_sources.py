"""Route sources that predict: what they read, when they are billed; no id depends on them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from specfit.base.interfaces import RouteSource
from specfit.base.types import CHANCE_ONE, DraftTree, Request, SpecfitError
from specfit.decoding.decoder import Decoder
from specfit.hardware.clock import ModelledClock
from specfit.models.routes.atlas import AtlasRoutes
from specfit.models.routes.last_token import LastTokenRoutes
from specfit.models.routes.learned import LearnedRoutes
from specfit.models.routes.predictor import in_bytes, load_predictor, most_likely, save_predictor
from specfit.models.routes.recent_use import RecentUse
from specfit.models.routes.token_table import TokenTableRoutes, count_table, load_table, save_table
from specfit.selection.cost import CostModel
from specfit.selection.cost_forms import pricing_named
from specfit.selection.selectors import SpecFit
from tests.fakes.tiny_model import CPU, EXPERTS, LAYERS, TOP_K, VOCABULARY, Pair
from tests.models.routes.predictors import random_predictor, random_table, write_files

COST = CostModel(1e7 + 6e5 * np.arange(8), 4e4)
HIDDEN = 64
PAIR = {"target": "t", "drafter": "d"}


def source_named(name: str, drafter: object) -> RouteSource:
    if name == "learned":
        return LearnedRoutes(random_predictor(HIDDEN, LAYERS, EXPERTS, TOP_K), drafter)  # type: ignore[arg-type]
    if name == "token_table":
        return TokenTableRoutes(random_table(VOCABULARY, LAYERS, EXPERTS, TOP_K))
    return LastTokenRoutes()


def decoder_of(pair: Pair, source: RouteSource, drafter: object, cost: str, route_ms: float = 0.0):  # type: ignore[no-untyped-def]
    selector = SpecFit(COST, EXPERTS, pricing=pricing_named(cost))
    clock = replace_route(pair.clock(), route_ms)
    return Decoder(pair.target(5), drafter, source, selector, clock)  # type: ignore[arg-type]


def replace_route(clock: ModelledClock, route_ms: float) -> ModelledClock:
    return ModelledClock(clock.profile, clock.billing, route_ms)


@pytest.mark.parametrize("cost", ["union", "expected_union"])
@pytest.mark.parametrize("name", ["learned", "token_table", "last_token"])
def test_ids_are_those_of_generate(pair: Pair, name: str, cost: str) -> None:
    """However wrong the routes are."""
    drafter = pair.drafter()
    decoder, accepted = decoder_of(pair, source_named(name, drafter), drafter, cost), 0
    for index in (0, 2):
        cycles = list(decoder.decode(pair.request(index, 14)))
        assert [t for cycle in cycles for t in cycle.tokens] == pair.greedy(index, 14)
        accepted += sum(cycle.record.verified_nodes for cycle in cycles)
    assert accepted > 0, "something was verified under these routes"


def test_each_read_is_billed_to_route_ns(pair: Pair) -> None:
    drafter = pair.drafter()
    decoder = decoder_of(pair, source_named("learned", drafter), drafter, "union", route_ms=0.25)
    cycles = [cycle.record for cycle in decoder.decode(pair.request(0, 10))]
    assert cycles[0].route_ns == 0, "prefill reads no routes"
    for record in cycles[1:]:
        assert record.route_ns == 250_000 * record.drafted_levels > 0
    free = decoder_of(pair, source_named("learned", drafter), drafter, "union")
    assert {cycle.record.route_ns for cycle in free.decode(pair.request(0, 10))} == {0}


def test_an_atlas_is_billed_nothing(pair: Pair) -> None:
    target = pair.target(5)
    clock = replace_route(pair.clock(), 0.25)
    decoder = Decoder(target, pair.drafter(), AtlasRoutes(target), SpecFit(COST, EXPERTS), clock)
    assert {c.record.route_ns for c in decoder.decode(pair.request(0, 8))} == {0}


# -- learned -------------------------------------------------------------------------------------


class Remembering:
    """A drafter's features as a lookup; counts the rows that are asked for."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self._features = torch.from_numpy(rng.normal(size=(40, HIDDEN))).float()
        self._embeddings = torch.from_numpy(rng.normal(size=(50, HIDDEN))).float()
        self.asked: list[list[int]] = []

    def features(self, nodes):  # type: ignore[no-untyped-def]
        self.asked.append(list(nodes))
        return self._features[[node + 1 for node in nodes]]

    def embed(self, tokens):  # type: ignore[no-untyped-def]
        return self._embeddings[tokens]


def grown() -> list[DraftTree]:
    """Levels of 2 + 4 + 4 nodes."""
    tree, trees = DraftTree.empty(), []
    for size, parents in ((2, [-1, -1]), (4, [0, 0, 1, 1]), (4, [2, 2, 4, 4])):
        probs = np.full(size, 1000 - len(tree))
        tree = tree.grown(np.arange(size) + len(tree), np.array(parents), probs)
        trees.append(tree)
    return trees


def test_a_node_is_predicted_once_from_what_it_was_drafted_from() -> None:
    drafter = Remembering()
    predictor = random_predictor(HIDDEN, LAYERS, EXPERTS, TOP_K)
    source = LearnedRoutes(predictor, drafter)
    source.begin(Request("r", np.ones(3, dtype=np.int64), 5, frozenset()))
    source.observe(np.ones((4, LAYERS, 1), dtype=np.int64))
    seen = [source.read(30, tree, 9) for tree in grown()]
    assert drafter.asked == [[-1, -1, -1], [0, 0, 1, 1], [2, 2, 4, 4]]
    for few, more in pairwise(seen):  # the stop of app. A.2 needs this
        assert np.array_equal(more.root, few.root)
        assert np.array_equal(more.nodes[: len(few)], few.nodes)
        assert np.array_equal(more.chances[: 1 + len(few)], few.chances)
    last, tree = seen[-1], grown()[-1]
    parents, tokens = [-1, *tree.parents], torch.tensor([30, *tree.tokens])
    use = torch.from_numpy(source._recent.use)[None]
    assert use.max() > 0
    depths = torch.tensor([0, *tree.depths])
    logits = predictor(drafter.features(parents), drafter.embed(tokens), depths, use)
    ids = most_likely(logits, TOP_K)
    assert np.array_equal(ids, np.concatenate([last.root[None], last.nodes]))
    above = logits[[0, *(tree.parents + 1)]]
    assert np.array_equal(in_bytes(predictor.if_new(logits, above, depths)), last.chances)
    source.end_cycle()
    assert len(source.read(30, grown()[0], 10)) == 2, "a new cycle begins with its root"


def test_most_likely_is_ordered_and_chances_are_bytes() -> None:
    logits = torch.tensor([[[0.0, 9.0, 0.0, -9.0, 30.0]]])
    ids, chances = most_likely(logits, 3), in_bytes(logits)
    assert ids.tolist() == [[[4, 1, 0]]], "ties to the lower id"
    assert chances.tolist() == [[[128, 255, 128, 0, 255]]]
    assert chances.max() < CHANCE_ONE


def test_files_name_the_pair_they_are_for(tmp_path: Path) -> None:
    folder = write_files(tmp_path, PAIR, HIDDEN, (VOCABULARY, LAYERS, EXPERTS, TOP_K))
    learned, table = folder / "learned.safetensors", folder / "token_table.safetensors"
    stored = load_predictor(learned, PAIR, CPU)
    fresh = random_predictor(HIDDEN, LAYERS, EXPERTS, TOP_K)
    for name, weight in stored.state_dict().items():
        assert torch.allclose(weight, fresh.state_dict()[name], atol=2e-3), "kept in float16"
    assert load_table(table, "t").shape == (VOCABULARY, LAYERS, TOP_K)
    with pytest.raises(SpecfitError, match="trained for another drafter"):
        load_predictor(learned, PAIR | {"drafter": "other"}, CPU)
    with pytest.raises(SpecfitError, match="routes of another target"):
        load_table(table, "other")
    with pytest.raises(SpecfitError, match="is no route predictor"):
        load_predictor(table, PAIR, CPU)
    with pytest.raises(SpecfitError, match="no route predictor at"):
        load_predictor(folder / "none.safetensors", PAIR, CPU)
    learned.write_bytes(learned.read_bytes()[:-100])
    with pytest.raises(SpecfitError, match="cannot be read"):
        load_predictor(learned, PAIR, CPU)


def test_a_predictor_of_another_shape_is_damaged(tmp_path: Path) -> None:
    predictor = random_predictor(HIDDEN, LAYERS, EXPERTS, TOP_K)
    predictor.shape = replace(predictor.shape, width=25)
    save_predictor(tmp_path / "learned.safetensors", predictor, PAIR)
    with pytest.raises(SpecfitError, match="is damaged"):
        load_predictor(tmp_path / "learned.safetensors", PAIR, CPU)


def test_parameters_are_counted() -> None:
    predictor = random_predictor(HIDDEN, LAYERS, EXPERTS, TOP_K)
    assert predictor.shape.parameters == sum(w.numel() for w in predictor.parameters())


# -- the baselines -------------------------------------------------------------------------------


def test_the_table_holds_what_each_token_used_most(tmp_path: Path) -> None:
    tokens = np.array([3, 3, 3, 5])
    routes = np.array([[[1, 2]], [[2, 4]], [[2, 4]], [[0, 6]]])
    table = count_table(tokens, routes, vocabulary=8, experts=8)
    assert table[3].tolist() == [[2, 4]], "counted 3 and 2 times"
    assert table[5].tolist() == [[0, 6]]
    assert table[7].tolist() == [[2, 4]], "a token that was not seen: the layer's most used"
    save_table(tmp_path / "t.safetensors", table, {"target": "t"})
    source = TokenTableRoutes(load_table(tmp_path / "t.safetensors", "t"))
    tree = DraftTree.empty().grown(np.array([5, 7]), np.array([-1, -1]), np.array([9, 8]))
    routes_of = source.read(3, tree, 4)
    assert routes_of.root.tolist() == [[2, 4]]
    assert routes_of.nodes.tolist() == [[[0, 6]], [[2, 4]]]
    assert routes_of.chances is None


def test_recent_use_is_a_mean_whose_weights_fall_with_age() -> None:
    routed = np.array([[[1]], [[2]], [[1]]])  # one layer, one expert a token
    recent = RecentUse((0.0, 0.5), layers=1, experts=4)
    recent.add(routed)
    assert recent.use[0, 0].tolist() == [0, 1, 0, 0], "the newest alone"
    assert recent.use[1, 0].tolist() == [0, 0.125 + 0.5, 0.25, 0]
    piecewise = RecentUse((0.0, 0.5), 1, 4)
    for token in routed:
        piecewise.add(token[None].astype(np.uint8))
    assert np.array_equal(piecewise.use, recent.use)
    recent.clear()
    assert not recent.use.any()


class Watched(LastTokenRoutes):
    def __init__(self) -> None:
        self.told: list[np.ndarray] = []

    def observe(self, routed):  # type: ignore[no-untyped-def]
        self.told.append(np.array(routed))
        super().observe(routed)


def test_a_source_is_told_of_every_kept_token_once(pair: Pair) -> None:
    """The rows are those that plain decoding routes, token by token."""
    drafter, source = pair.drafter(), Watched()
    decoder = decoder_of(pair, source, drafter, "union")
    request = pair.request(2, 14)
    cycles = list(decoder.decode(request))
    committed = np.cumsum([len(cycle.tokens) for cycle in cycles])
    text = [*request.prompt_ids.tolist(), *pair.greedy(2, 14)]
    plain = routes_of_text(pair, text[:-1])
    assert [len(rows) for rows in source.told] == [
        len(request.prompt_ids),
        *(len(cycle.tokens) for cycle in cycles[1:]),
    ]
    for routed, count in zip(source.told, committed, strict=True):
        end = len(request.prompt_ids) + int(count) - 1  # the root is not processed yet
        expected = plain[end - len(routed) : end]
        assert np.array_equal(np.sort(routed, -1), np.sort(expected, -1))


def routes_of_text(pair: Pair, text: list[int]) -> np.ndarray:
    """[T, L, k]"""
    target = pair.target(0)
    target.begin()
    target.prefill(np.array(text))
    return np.stack(target.engine.routes, axis=1)


def test_last_token_gives_every_node_the_same(pair: Pair) -> None:
    source = LastTokenRoutes()
    source.begin(pair.request(0, 3))
    newest = np.arange(LAYERS * TOP_K, dtype=np.uint8).reshape(LAYERS, TOP_K)
    source.observe(np.stack([newest + 1, newest]))
    tree = grown()[1]
    found = source.read(1, tree, 9)
    assert len(found) == len(tree) and (found.nodes == found.root).all()
    assert np.array_equal(found.root, newest) and found.root.dtype == np.int64
