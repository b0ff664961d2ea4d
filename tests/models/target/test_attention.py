"""Group-query attention without copies: the bits of transformers' own, and nothing widened."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from specfit.models.target.attention import GROUPED, MOST_ROWS, grouped_attention, use_attention
from specfit.models.target.masks import tree_mask
from specfit.models.target.offloaded import OffloadedTarget
from tests.fakes.tiny_model import Pair
from tests.models.target.test_offloaded import ROOT_TOKEN, SELECTION, TREE

KV_HEADS, GROUP, WIDTH = 4, 8, 128


class Module(torch.nn.Module):
    num_key_value_groups = GROUP
    is_causal = True
    training = False


def inputs(rows: int, columns: int, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((GROUP * KV_HEADS, rows), (KV_HEADS, columns), (KV_HEADS, columns))
    return [torch.randn(1, *shape, WIDTH, generator=generator) for shape in shapes]


def mask_of(rows: int, columns: int) -> torch.Tensor | None:
    ancestry = np.tril(np.ones((rows - 1, rows - 1), dtype=bool))
    return tree_mask(columns - rows, ancestry)


class Largest(TorchDispatchMode):
    """Elements of the largest tensor that an operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else (made,):
            if isinstance(tensor, torch.Tensor):
                self.elements = max(self.elements, tensor.untyped_storage().nbytes() // 4)
        return made


@pytest.mark.parametrize("columns", [40, 257, 1100])
@pytest.mark.parametrize("rows", [1, 5, 9, 19])
def test_it_is_transformers_own_to_the_last_bit(rows: int, columns: int) -> None:
    query, key, value = inputs(rows, columns)
    mask = mask_of(rows, columns)
    arguments = Module(), query, key, value, mask
    ours, _ = grouped_attention(*arguments, scaling=WIDTH**-0.5)
    theirs, _ = sdpa_attention_forward(*arguments, scaling=WIDTH**-0.5)
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("rows", [2, 3])
def test_few_rows_are_transformers_own_but_for_the_last_bits(rows: int) -> None:
    query, key, value = inputs(rows, 257)
    arguments = Module(), query, key, value, mask_of(rows, 257)
    ours, _ = grouped_attention(*arguments, scaling=WIDTH**-0.5)
    theirs, _ = sdpa_attention_forward(*arguments, scaling=WIDTH**-0.5)
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)


def test_keys_and_values_are_not_copied_for_every_query_head() -> None:
    query, key, value = inputs(9, 1100)
    made = []
    for attention in (grouped_attention, sdpa_attention_forward):
        with Largest() as largest:
            attention(Module(), query, key, value, mask_of(9, 1100), scaling=WIDTH**-0.5)
        made.append(largest.elements)
    assert made[0] < key.numel() and made[1] >= GROUP * key.numel()


def test_a_prefill_goes_the_other_way() -> None:
    rows = MOST_ROWS + 1
    query, key, value = inputs(rows, rows)
    mask = torch.ones(rows, rows, dtype=torch.bool).tril()[None, None]
    ours, _ = grouped_attention(Module(), query, key, value, mask, scaling=0.1)
    theirs, _ = sdpa_attention_forward(Module(), query, key, value, mask, scaling=0.1)
    assert torch.equal(ours, theirs)


def test_a_whole_target_decodes_the_same(pair: Pair) -> None:
    """The form that only a GPU uses, switched on here: same tokens, same routes, same features."""
    config = pair.loaded.model.config
    plain = _cycle(pair.target(slots=3), pair)
    before = config._attn_implementation
    use_attention(pair.loaded.model, torch.device("cuda"))
    try:
        assert config._attn_implementation == GROUPED
        grouped = _cycle(pair.target(slots=3), pair)
    finally:
        config._attn_implementation = before
    for ours, theirs in zip(grouped, plain, strict=True):
        assert ours.routes.tolist() == theirs.routes.tolist()
        torch.testing.assert_close(ours.features, theirs.features, atol=1e-4, rtol=1e-4)
    assert grouped[1].tokens.tolist() == plain[1].tokens.tolist()


def _cycle(target: OffloadedTarget, pair: Pair):  # type: ignore[no-untyped-def]
    filled = target.prefill(pair.prompts[0])
    return filled, target.verify(ROOT_TOKEN, TREE, SELECTION)
