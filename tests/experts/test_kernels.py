"""The Triton kernels against the loop, in Triton's interpreter; a GPU repeats this in bfloat16."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from specfit.base.types import SpecfitError
from specfit.experts.arithmetic import LoopArithmetic, sort_by_item
from specfit.experts.expert_format import plain_format
from specfit.experts.kernels.choice import choose_arithmetic

ROOT = Path(__file__).parents[2]
CPU, SILU = torch.device("cpu"), torch.nn.functional.silu
FORMAT = plain_format(4, 2, torch.float32)
CAPABILITIES = ("89", "90", "120")


def test_kernels_agree_with_the_loop_in_the_interpreter() -> None:
    """Ragged groups, one row, all rows to one expert, empty experts; float32 and float16; and each
    result is the same bits when the items run one by one, in another order, from other blocks."""
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-m", "tests.experts.kernel_cases"],
        cwd=ROOT,
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("the same: True") == 10 + 4  # and four packed layouts


def test_places_are_sorted_by_item_with_rows_ascending() -> None:
    import numpy as np

    places, starts = sort_by_item(np.array([[4, 1], [1, 9], [4, 9]]), [9, 1, 4])
    assert starts == [0, 2, 4, 6]
    assert places.tolist() == [3, 5, 1, 2, 0, 4]


def test_the_loop_runs_where_the_kernels_cannot() -> None:
    with pytest.raises(SpecfitError, match="a CUDA device; use"):
        choose_arithmetic("triton", SILU, CPU, FORMAT)
    cuda = torch.device("cuda")
    assert isinstance(
        choose_arithmetic("auto", torch.nn.functional.gelu, cuda, FORMAT), LoopArithmetic
    )
    with pytest.raises(SpecfitError, match="silu"):
        choose_arithmetic("triton", torch.nn.functional.gelu, cuda, FORMAT)


@pytest.mark.slow
def test_the_compiler_takes_them_for_a_gpu_that_is_not_here() -> None:
    """Triton's own compiler to machine code of compute capability 8.9, 9.0 and 12.0: plain, e4m3,
    int4 blocks, in bfloat16 and float32."""
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-m", "tests.experts.compile_kernels", *CAPABILITIES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for capability in CAPABILITIES:
        assert done.stdout.count(f"sm_{capability}:") == 18
        for name in ("fp8", "int4", "int4 with zeros"):
            assert f"gate_up_kernel {name} bf16 sm_{capability}:" in done.stdout
