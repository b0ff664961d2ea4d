from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from specfit.base.types import DraftTree, Request, Routes, SpecfitError
from specfit.models.routes.noisy import NoisyRoutes, corrupt

LAYERS, K, EXPERTS = 6, 8, 128


def rows(count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    ids = [rng.permutation(EXPERTS)[:K] for _ in range(count * LAYERS)]
    return np.array(ids).reshape(count, LAYERS, K)


def noisy(
    row: np.ndarray, path: tuple[int, ...] = (1, 2), position: int = 9, **other
) -> np.ndarray:
    settings = {"accuracy": 0.6, "seed": 0, "request_id": "q1", "num_experts": EXPERTS, **other}
    return corrupt(row, position=position, node_path=path, **settings)


class Exact:
    """Gives the first rows of a fixed table, read-only and as small as an atlas may be."""

    on_clock = False

    def __init__(self, table: np.ndarray) -> None:
        self.table = table.astype(np.uint8)
        self.table.flags.writeable = False
        self.ended = 0

    def begin(self, request: Request) -> None: ...

    def read(self, root_token: int, tree: DraftTree, context_tokens: int) -> Routes:
        return Routes(self.table[0], self.table[1 : 1 + len(tree)])

    def end_cycle(self) -> None:
        self.ended += 1


def grown() -> list[DraftTree]:
    """Levels of 2 + 4 + 4 nodes."""
    tree, trees = DraftTree.empty(), []
    for size, parents in ((2, [-1, -1]), (4, [0, 0, 1, 1]), (4, [2, 2, 4, 4])):
        first = len(tree)
        probs = np.full(size, 1000 - first)
        tree = tree.grown(np.arange(first, first + size) % 5, np.array(parents), probs)
        trees.append(tree)
    return trees


def request(name: str) -> Request:
    return Request(name, np.ones(3, dtype=np.int64), 5, frozenset())


def test_eight_distinct_ids_and_the_kept_ones_in_place() -> None:
    for i, row in enumerate(rows(100)):
        out = noisy(row, path=(1, i))
        assert out.shape == row.shape and out.min() >= 0 and out.max() < EXPERTS
        for true, given in zip(row, out, strict=True):
            assert len(set(given.tolist())) == K
            replaced = given[given != true]
            assert not set(replaced.tolist()) & set(true.tolist())


@pytest.mark.parametrize("accuracy", [0.0, 0.25, 0.6, 1.0])
def test_expected_accuracy_everywhere(accuracy: float) -> None:
    """1,500 rows x 6 layers: within four standard deviations, per layer and per place."""
    table = rows(1500)
    kept = np.array(
        [noisy(row, path=(7, i), accuracy=accuracy) == row for i, row in enumerate(table)]
    )
    spread = 4 * np.sqrt(accuracy * (1 - accuracy) / len(table))
    for axis in ((0, 2), (0, 1)):
        assert np.abs(kept.mean(axis=axis) - accuracy).max() <= spread


def test_replacements_spread_over_all_other_experts() -> None:
    table = np.broadcast_to(np.arange(K), (2000, LAYERS, K))
    out = np.array([noisy(row, path=(7, i)) for i, row in enumerate(table)])
    counts = np.bincount(out[out >= K], minlength=EXPERTS)[K:]
    expected = counts.sum() / (EXPERTS - K)
    assert (np.abs(counts - expected) < 6 * np.sqrt(expected)).all()


def test_every_named_input_counts_and_layers_differ() -> None:
    row = np.broadcast_to(np.arange(K), (LAYERS, K))
    base = noisy(row)
    assert np.array_equal(base, noisy(row))
    others = [
        noisy(row, seed=1),
        noisy(row, request_id="q2"),
        noisy(row, position=10),
        noisy(row, path=(1, 3)),
        noisy(row, path=(2, 2)),
        noisy(row, path=(1,)),
        noisy(row, path=(1, 2, 2)),
    ]
    assert all(not np.array_equal(base, other) for other in others)
    assert len({tuple(layer) for layer in base.tolist()}) == LAYERS


def test_order_of_ids_within_a_row_does_not_matter() -> None:
    """A recording may keep sets: the noisy set is the same for any order of the true ids."""
    rng = np.random.default_rng(3)
    for i, row in enumerate(rows(50)):
        shuffled = rng.permuted(row, axis=-1)
        one, two = noisy(row, path=(i,)), noisy(shuffled, path=(i,))
        assert np.array_equal(np.sort(one, axis=-1), np.sort(two, axis=-1))


def test_source_equals_single_rows_in_any_order_of_calls() -> None:
    table, trees = rows(11), grown()
    source = NoisyRoutes(Exact(table), EXPERTS, 0.6, seed=4)
    for name, position in (("b", 7), ("a", 5), ("b", 7)):
        source.begin(request(name))
        for tree in trees if name == "b" else trees[-1:]:
            routes = source.read(3, tree, position)
            assert len(routes) == len(tree)
        source.end_cycle()
        for node in (9, 4, 0, 7):
            path = (3, *(int(tree.tokens[n]) for n in tree.path(node)))
            single = corrupt(table[node + 1], 0.6, 4, name, position, path, EXPERTS)
            assert np.array_equal(routes.nodes[node], single)
        assert np.array_equal(routes.root, corrupt(table[0], 0.6, 4, name, position, (3,), EXPERTS))
    assert source.source.ended == 3 and not source.on_clock


def test_a_cycle_remembers_nothing_of_the_one_before() -> None:
    tree = grown()[0]
    source = NoisyRoutes(Exact(rows(3)), EXPERTS, 0.6, seed=0)
    source.begin(request("a"))
    first = source.read(3, tree, 5)
    source.end_cycle()
    second = source.read(3, tree, 6)
    assert not np.array_equal(first.root, second.root)
    assert not np.array_equal(first.nodes, second.nodes)


def test_same_in_another_process() -> None:
    code = (
        "import numpy as np; from specfit.models.routes.noisy import corrupt;"
        "print(corrupt(np.arange(8)[None], 0.5, 3, 'q', 11, (4, 5), 128).tolist())"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    here = corrupt(np.arange(8)[None], 0.5, 3, "q", 11, (4, 5), 128)
    assert printed.strip() == str(here.tolist())
    assert here.tolist() == GOLDEN, "recorded noisy runs stay what they were"


GOLDEN = [[0, 1, 49, 3, 4, 5, 6, 26]]


@pytest.mark.parametrize("accuracy, experts", [(1.5, 128), (-0.1, 128), (0.5, 12)])
def test_impossible_noise_is_refused(accuracy: float, experts: int) -> None:
    with pytest.raises(SpecfitError):
        corrupt(np.arange(8)[None], accuracy, 0, "q", 1, (1,), experts)
