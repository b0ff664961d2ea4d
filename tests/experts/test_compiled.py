"""The compiled experts of a CPU against float64, and bit for bit against themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from specfit.base.types import SpecfitError
from specfit.experts.arithmetic import LoopArithmetic
from specfit.experts.expert_format import plain_format
from specfit.experts.kernels.choice import choose_arithmetic
from specfit.experts.kernels.compiled import MAX_ROWS, CompiledArithmetic
from tests.experts.kernel_cases import CASES, HIDDEN, INNER, compute

CPU, SILU = torch.device("cpu"), torch.nn.functional.silu
FLOAT32, NARROW = (plain_format(4, 2, dtype) for dtype in (torch.float32, torch.bfloat16))


@pytest.mark.parametrize("name", CASES)
def test_it_agrees_with_float64_and_no_grouping_changes_a_bit(name: str) -> None:
    topk = np.array(CASES[name])
    experts, hidden, weights = values(len(topk), topk.shape[1])
    order = np.unique(topk).tolist()
    loop = LoopArithmetic(SILU)
    compiled = CompiledArithmetic(loop)
    doubles = [t.double() for t in (experts, hidden, weights)]
    truth = compute(loop, topk, order, [len(order)], *doubles)
    whole = compute(compiled, topk, order, [len(order)], experts, hidden, weights)
    assert float((whole.double() - truth).norm() / truth.norm()) < 1e-6
    alone = compute(compiled, topk, order[::-1], [1] * len(order), experts, hidden, weights)
    assert torch.equal(whole, alone)


def test_a_row_is_the_same_alone_and_among_others() -> None:
    topk = np.array(CASES["ragged"])
    experts, hidden, weights = values(*topk.shape)
    compiled = CompiledArithmetic(LoopArithmetic(SILU))
    order = np.unique(topk).tolist()
    whole = compute(compiled, topk, order, [len(order)], experts, hidden, weights)
    for row in range(len(topk)):
        one = topk[row : row + 1]
        own = np.unique(one).tolist()
        alone = compute(
            compiled, one, own, [len(own)], experts, hidden[row : row + 1], weights[row : row + 1]
        )
        assert torch.equal(whole[row], alone[0])


def test_many_rows_are_matrix_products() -> None:
    topk = np.array([[i % 8] for i in range(MAX_ROWS + 1)])
    experts, hidden, weights = values(*topk.shape)
    loop = LoopArithmetic(SILU)
    pair = [
        compute(kind, topk, list(range(8)), [8], experts, hidden, weights)
        for kind in (loop, CompiledArithmetic(loop))
    ]
    assert torch.equal(*pair)


def test_where_it_runs() -> None:
    assert isinstance(choose_arithmetic("auto", SILU, CPU, FLOAT32), CompiledArithmetic)
    assert isinstance(choose_arithmetic("loop", SILU, CPU, FLOAT32), LoopArithmetic)
    gelu = torch.nn.functional.gelu
    assert isinstance(choose_arithmetic("auto", gelu, CPU, FLOAT32), LoopArithmetic)
    assert isinstance(choose_arithmetic("auto", SILU, CPU, NARROW), LoopArithmetic)
    with pytest.raises(SpecfitError, match=r"float32; use gpu\.kernel=loop"):
        choose_arithmetic("compiled", SILU, CPU, NARROW)
    with pytest.raises(SpecfitError, match="silu"):
        choose_arithmetic("compiled", gelu, CPU, FLOAT32)


def values(rows: int, top_k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(rows)
    experts = torch.randn(8, 3 * HIDDEN * INNER) / 8
    return experts, torch.randn(rows, HIDDEN), torch.rand(rows, top_k)
