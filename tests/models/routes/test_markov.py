"""The chain's routes: real union growth, one answer per text, whatever was asked in between."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from specfit.models.routes.markov import MarkovRoutes, parent_columns
from specfit.models.target.masks import causal_mask, tree_mask

LAYERS, EXPERTS, TOP_K = 48, 128, 8
# Distinct experts of n consecutive tokens, mean over layers (shared/reference/peers.md).
REAL = {1: 8.0, 2: 12.4, 3: 15.8, 4: 18.8, 8: 27.2, 16: 37.2}


def growth(states: np.ndarray, n: int) -> np.ndarray:
    """states [T, L, k] -> mean distinct experts of n consecutive tokens, per layer [L]."""
    windows = range(16, len(states) - n, 5)
    counts = [
        [len(np.unique(states[t : t + n, layer])) for layer in range(states.shape[1])]
        for t in windows
    ]
    return np.mean(counts, axis=0)


def text_states(length: int, seed: int) -> np.ndarray:
    tokens = np.random.default_rng(seed).integers(0, 1000, length)
    chain = MarkovRoutes(LAYERS, EXPERTS, TOP_K, seed)
    chain.begin_forward(0, tokens, causal_mask(0, length))
    return np.stack([chain.routes(layer) for layer in range(LAYERS)], axis=1)


def test_unions_grow_as_those_of_real_text() -> None:
    states = np.concatenate([text_states(150, seed) for seed in range(3)])
    for n, real in REAL.items():
        assert abs(growth(states, n).mean() / real - 1) < 0.06, n
    assert all(len(np.unique(row)) == TOP_K for row in states[::40].reshape(-1, TOP_K))


def test_layers_differ_as_the_traces_do(specfit_data: Path) -> None:
    """The first layer routes widest; ours follows the traces layer by layer."""
    file = specfit_data / "traces" / "qwen3_30b_a3b_instruct2507_prefill_topk.npz"
    if not file.exists():
        pytest.skip(f"no {file}")
    real = growth(np.load(file)["seqs"][0, :400].astype(np.int64), 8)
    ours = growth(text_states(300, 5), 8)
    assert np.corrcoef(real, ours)[0, 1] > 0.8
    assert np.abs(ours / real - 1).mean() < 0.12


def test_parents_are_the_last_ancestors_in_the_mask() -> None:
    assert parent_columns(0, causal_mask(0, 4)).tolist() == [-1, 0, 1, 2]
    assert parent_columns(3, causal_mask(3, 3)).tolist() == [2, 3, 4]
    # root 3 | 4, 5 under it | 6 under 4, 7 under 5
    ancestry = np.eye(4, dtype=bool)
    ancestry[2, 0] = ancestry[3, 1] = True
    mask = tree_mask(3, ancestry)
    assert mask is not None
    assert parent_columns(3, mask).tolist() == [2, 3, 3, 4, 5]
    assert parent_columns(6, mask[:, :, 3:]).tolist() == [4, 5], "new nodes on scratch columns"


def everything(chain: MarkovRoutes) -> np.ndarray:
    return np.stack([chain.routes(layer) for layer in range(3)], axis=1)


def test_a_path_routes_alike_in_a_tree_alone_and_after_being_kept() -> None:
    def chain() -> MarkovRoutes:
        return MarkovRoutes(3, EXPERTS, TOP_K, seed=7)

    prompt, path = np.array([5, 6, 7]), np.array([9, 20, 21, 30])
    plain = chain()
    plain.begin_forward(0, np.concatenate([prompt, path]), causal_mask(0, 7))
    expected = everything(plain)[3:]

    treed = chain()
    treed.begin_forward(0, prompt, causal_mask(0, 3))
    ancestry = np.eye(3, dtype=bool)
    ancestry[2, 0] = True  # 20 and 99 below the root, 21 below 20
    treed.begin_forward(3, np.array([9, 20, 99, 21]), tree_mask(3, ancestry))
    in_tree = everything(treed)
    assert np.array_equal(in_tree[[0, 1, 3]], expected[:3])
    assert not np.array_equal(in_tree[2], expected[1]), "another token, other draws"
    assert len(np.intersect1d(in_tree[2], in_tree[1])) > 0
    treed.keep(3, [0, 1, 3])
    treed.begin_forward(6, np.array([30]), None)
    assert np.array_equal(everything(treed)[0], expected[3])


def test_another_seed_is_another_chain_and_num_layers_wraps() -> None:
    mask = torch.ones(1, 1, 2, 2, dtype=torch.bool).tril()
    first, second = MarkovRoutes(50, EXPERTS, TOP_K, 0), MarkovRoutes(50, EXPERTS, TOP_K, 1)
    for chain in (first, second):
        chain.begin_forward(0, np.array([1, 2]), mask)
    assert first.routes(49).shape == (2, TOP_K)
    assert not np.array_equal(first.routes(0), second.routes(0))
