"""A model without weights: real shapes made small, stood-in routes, a script that is committed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from specfit.base.types import DraftTree, Selection, SpecfitError
from specfit.decoding.resolve import locate
from specfit.experts.arithmetic import LoopArithmetic
from specfit.experts.cache import ExpertCache
from specfit.experts.copies import CpuCopyEngine
from specfit.experts.engine import ExpertEngine
from specfit.models.routes.markov import MarkovRoutes
from specfit.models.target import dummy
from specfit.models.target.dummy import RandomCheckpoint, load_random
from specfit.models.target.forced import ForcedTarget
from specfit.models.target.loading import LoadedModel

CPU = torch.device("cpu")
FOLDER = locate("package:weights/qwen3-30b-a3b-dummy")
SHAPE = {
    "hidden_size": 32,
    "moe_intermediate_size": 8,
    "intermediate_size": 16,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "vocab_size": 300,
}
PROMPT, SCRIPT = (5, 6, 7, 8), [40, 41, 42, 43, 44]
TREE = DraftTree(
    tokens=np.array([41, 90, 42, 99]),
    parents=np.array([-1, -1, 0, 0]),
    depths=np.array([1, 1, 2, 2]),
    path_probs=np.array([9, 5, 4, 3]),
)


def test_the_shapes_are_the_papers() -> None:
    from specfit.models.target.family import geometry_of

    shape = geometry_of(RandomCheckpoint(FOLDER, {}).config)
    assert (shape.layers, shape.experts, shape.top_k) == (48, 128, 8)
    assert 3 * shape.hidden * shape.intermediate * 2 == 9_437_184
    assert shape.vocabulary == 151_936


def test_a_number_that_the_config_has_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecfitError, match=r"model\.shape\.hiden_size is no number"):
        RandomCheckpoint(FOLDER, {"hiden_size": 8})
    with pytest.raises(SpecfitError, match="no folder"):
        RandomCheckpoint(tmp_path / "absent", {})


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return load_random(RandomCheckpoint(FOLDER, SHAPE), torch.float32, CPU, 2)


def target(loaded: LoadedModel, slots: int) -> ForcedTarget:
    shape = loaded.geometry
    cache = ExpertCache(shape.layers, shape.experts, slots)
    arithmetic = LoopArithmetic(loaded.activation)
    engine = ExpertEngine(loaded.store, cache, CpuCopyEngine(2), arithmetic, CPU)
    engine.stand_in = MarkovRoutes(shape.layers, shape.experts, shape.top_k, 0)
    return ForcedTarget(loaded, engine, (), None, CPU, scripts={PROMPT: SCRIPT})


def test_values_are_random_and_the_same_every_time(loaded: LoadedModel) -> None:
    again = load_random(RandomCheckpoint(FOLDER, SHAPE), torch.float32, CPU, 2)
    assert loaded.geometry.layers == 2 and loaded.digest == again.digest
    first, second = loaded.store.block(1, 5), loaded.store.block(1, 6)
    assert torch.equal(first, again.store.block(1, 5)) and not torch.equal(first, second)
    assert float(first.std()) == pytest.approx(0.02, rel=0.1)
    assert all(bool(p.isfinite().all()) and not p.is_meta for p in loaded.model.parameters())
    assert RandomCheckpoint(FOLDER, SHAPE | {"vocab_size": 301}).digest() != loaded.digest


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_pack_has_the_same_values_and_is_made_expert_by_expert(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype
) -> None:
    checkpoint = RandomCheckpoint(FOLDER, SHAPE)
    host = load_random(checkpoint, dtype, CPU, 2)
    sizes: list[int] = []
    draw, fill_dense = dummy._random, dummy._fill_dense

    def seen(shape: tuple[int, ...], *rest: Any) -> torch.Tensor:
        sizes.append(math.prod(shape))
        return draw(shape, *rest)

    def dense_then_experts(*arguments: Any) -> None:
        fill_dense(*arguments)
        sizes.clear()

    monkeypatch.setattr(dummy, "_random", seen)
    monkeypatch.setattr(dummy, "_fill_dense", dense_then_experts)
    disk = load_random(checkpoint, dtype, CPU, 2, tmp_path)
    shape = host.geometry
    for layer in range(shape.layers):
        for expert in range(shape.experts):
            assert torch.equal(disk.store.block(layer, expert), host.store.block(layer, expert))
    assert sizes and max(sizes) * dtype.itemsize <= disk.store.format.block_bytes


def test_the_script_is_committed_and_only_it_is_accepted(loaded: LoadedModel) -> None:
    from specfit.decoding.acceptance import accepted_rows

    forced = target(loaded, 16)
    filled = forced.prefill(np.array(PROMPT))
    assert filled.token == 40
    everything = Selection((0, 1, 2, 3))
    verified = forced.verify(40, TREE, everything)
    rows = accepted_rows(TREE, everything, verified.tokens)
    assert verified.tokens[rows].tolist() == [41, 42, 43]
    forced.keep(rows)
    after = forced.verify(43, DraftTree.empty(), Selection(()))
    assert after.tokens.tolist() == [44]
    forced.keep([0])
    forced.verify(44, DraftTree.empty(), Selection(()))  # past the script: the weights answer


def test_a_prompt_without_a_script_is_answered_by_the_weights(loaded: LoadedModel) -> None:
    forced, other = target(loaded, 16), np.array([9, 9, 3])
    token = forced.prefill(other).token
    plain = target(loaded, 16)
    plain._scripts = {}
    assert token == plain.prefill(other).token


def test_atlas_and_verify_route_alike_and_routes_are_the_chains(loaded: LoadedModel) -> None:
    forced = target(loaded, 16)
    forced.prefill(np.array(PROMPT))
    seen = forced.observe(40, TREE, 0)
    verified = forced.verify(40, TREE, Selection((0, 1, 2, 3)))
    told = np.concatenate([seen.root[None], seen.nodes])
    assert np.array_equal(told, verified.routes)
    assert verified.trace.demand.tolist() == [
        len(np.unique(verified.routes[:, layer])) for layer in range(2)
    ]


def test_an_engine_whose_stand_in_was_not_told_refuses(loaded: LoadedModel) -> None:
    forced = target(loaded, 16)
    forced.prefill(np.array(PROMPT))
    engine: Any = forced.engine
    engine.begin_forward(on_clock=True)
    with pytest.raises(AssertionError, match="told"):
        engine.run(0, torch.zeros(3, 32), torch.zeros(3, 8, dtype=torch.long), torch.ones(3, 8))
