"""Fused layers and their graphs, without a GPU: the same numbers, fewer launches, right buckets."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from specfit.base.types import DraftTree, Selection, SpecfitError
from specfit.experts.arithmetic import Uploads
from specfit.models.target.graphs import COLUMNS, Size
from specfit.models.target.inputs import send
from specfit.models.target.loading import LoadedModel
from tests.fakes.launches import as_on_a_gpu, count, resident_target, verify
from tests.fakes.layer_kernels import RecordedCapture, TorchLayerKernels

ROOT = Path(__file__).parents[3]
MOST_LAUNCHES = 1300
LAYERS = 3


@pytest.fixture
def small() -> LoadedModel:
    return as_on_a_gpu(LAYERS, torch.float32)


def answers(target: Any, prompt: int = 12) -> Iterator[Any]:
    """A story of prefill, chains, kept rows and a scratch forward; over 256 columns at the end."""
    target.begin()
    yield target.prefill(np.arange(prompt) % 100)
    for rows in (1, 8, 3, 2, 5, 1, 7, 12, 4):
        verified = verify(target, rows)
        yield verified
        target.keep([0, *range(2, rows, 2)])
    tree = DraftTree(np.array([5, 9]), np.array([-1, -1]), np.array([1, 1]), np.array([0.5, 0.4]))
    yield target.observe(3, tree, 0)
    yield target.verify(3, tree, Selection((1,)))


def check_same(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs)
    if hasattr(ours, "features"):
        torch.testing.assert_close(ours.features, theirs.features, atol=1e-5, rtol=1e-4)
        assert ours.features.isfinite().all()
    for name in ("tokens", "routes", "token", "root", "nodes"):
        if hasattr(ours, name):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name


@pytest.mark.parametrize("prompt", [1, 250])
def test_fused_layers_are_transformers_own(small: LoadedModel, prompt: int) -> None:
    theirs = list(answers(resident_target(small), prompt))
    ours = list(answers(resident_target(small, TorchLayerKernels()), prompt))
    for mine, other in zip(ours, theirs, strict=True):
        check_same(mine, other)


@pytest.mark.parametrize("prompt", [1, 250])
def test_graphs_are_the_fused_layers(small: LoadedModel, prompt: int) -> None:
    """Twice: the second request meets graphs, addresses and columns of the first."""
    theirs = list(answers(resident_target(small, TorchLayerKernels()), prompt))
    capture = RecordedCapture()
    target = resident_target(small, TorchLayerKernels(), capture)
    for _ in range(2):
        for mine, other in zip(answers(target, prompt), theirs, strict=True):
            check_same(mine, other)
    assert capture.replayed > 0


# -- buckets ---------------------------------------------------------------------------------------


def test_rows_are_padded_to_the_next_bucket_and_columns_to_256() -> None:
    assert [Size.of(rows, 1) and Size.of(rows, 1).rows for rows in range(1, 10)] == [  # type: ignore[union-attr]
        *(1, 2, 4, 4, 8, 8, 8, 8, None)
    ]
    ends = (1, COLUMNS, COLUMNS + 1, 2000)
    assert [Size.of(3, end).columns for end in ends] == [256, 256, 512, 2048]  # type: ignore[union-attr]


def test_a_padded_row_is_not_kept_and_a_padded_column_not_seen() -> None:
    size = Size(4, 256)
    assert size.columns_of(9, 3).tolist() == [9, 10, 11, -1]
    own = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 0, 1]], dtype=torch.bool)
    mask = torch.cat([torch.ones(3, 9, dtype=torch.bool), own], dim=1)[None, None]
    padded = size.mask_of(mask, 3, 12)
    assert padded.shape == (1, 1, 4, 256)
    assert torch.equal(padded[:, :, :3, :12], mask) and not padded[..., 12:].any()
    assert padded.any(dim=-1).all(), "a row that sees nothing is no number"
    assert Size(1, 256).mask_of(None, 1, 12)[0, 0, 0].tolist() == [True] * 12 + [False] * 244


def test_graphs_are_captured_once_per_size(small: LoadedModel) -> None:
    capture = RecordedCapture()
    target = resident_target(small, TorchLayerKernels(), capture)
    target.prefill(np.arange(12))
    for rows, sizes in ((3, 1), (4, 1), (2, 2), (3, 2), (1, 3), (9, 3)):
        verify(target, rows)
        assert capture.captured == sizes * LAYERS, rows
        target.keep(range(rows))
    assert capture.replayed == 5 * LAYERS, "more rows than a bucket has go without"


def test_a_kv_cache_that_grows_drops_its_graphs_and_one_that_moves_rows_keeps_them(
    small: LoadedModel,
) -> None:
    capture = RecordedCapture()
    target = resident_target(small, TorchLayerKernels(), capture)
    target.prefill(np.arange(240) % 100)  # room for 480 columns
    for kept in ([0, 2, 3], range(4), range(4), range(4)):
        verify(target, 4)
        target.keep(kept)
    assert capture.captured == LAYERS and target.length == 255
    verify(target, 4)  # the next bucket, of 512
    assert capture.captured == 2 * LAYERS
    assert list(target._graphs._held) == [Size(4, 512)]  # type: ignore[union-attr]


def test_what_an_earlier_request_left_is_cleared(small: LoadedModel) -> None:
    """A masked score of a value that is no number is no number."""
    target = resident_target(small, TorchLayerKernels(), RecordedCapture())
    target.prefill(np.arange(40))
    expected = verify(target, 3).features
    with torch.inference_mode():
        target._kv._stored[:, :, :, 60:] = float("nan")  # type: ignore[index]
    assert torch.equal(verify(target, 3).features, expected)


def test_a_target_without_fused_layers_cannot_be_captured(small: LoadedModel) -> None:
    with pytest.raises(SpecfitError, match=r"gpu.graphs=true captures .* use gpu.graphs=false"):
        resident_target(small, None, RecordedCapture())


def test_biases_windows_and_other_classes_go_their_own_way(small: LoadedModel) -> None:
    attention = small.model.model.layers[1].self_attn
    attention.sliding_window = 64
    assert resident_target(small, TorchLayerKernels())._fused is None
    attention.sliding_window = None
    assert resident_target(small, TorchLayerKernels())._fused is not None
    attention.q_proj.bias = torch.nn.Parameter(torch.zeros(256))
    assert resident_target(small, TorchLayerKernels())._fused is None


def test_the_projections_are_held_once(small: LoadedModel) -> None:
    layer = small.model.model.layers[0].self_attn
    before = [p.weight.clone() for p in (layer.q_proj, layer.k_proj, layer.v_proj)]
    for _ in range(2):  # targets of a sweep share the weights
        target = resident_target(small, TorchLayerKernels())
        joined = target._fused.layers[0]._qkv  # type: ignore[union-attr]
        assert torch.equal(joined, torch.cat(before))
        assert layer.v_proj.weight.untyped_storage().data_ptr() == joined.data_ptr()


# -- launches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 8])
def test_a_forward_of_48_layers_takes_at_most_1300_launches(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of Qwen3-30B's layers in bfloat16, beside its experts; one upload, and one read a layer."""
    loaded = as_on_a_gpu(48)
    forms: list[tuple[Any, ...]] = [(), (TorchLayerKernels(),)]
    forms.append((TorchLayerKernels(), RecordedCapture()))
    plain, fused, graphs = (
        count(resident_target(loaded, *form), rows, monkeypatch) for form in forms
    )
    for name, launches in (("plain", plain), ("fused", fused), ("graphs", graphs)):
        print(f"{rows} rows, {name}: {launches.total} {dict(launches.counts.most_common())}")
    assert plain.total > 2500
    assert fused.total <= MOST_LAUNCHES
    assert graphs.total <= MOST_LAUNCHES / 6 + 50
    for launches in (plain, fused, graphs):
        assert launches.counts["inputs up"] == 1 and launches.counts["routes down"] == 48


class Counted(Uploads):
    def __init__(self) -> None:
        super().__init__(torch.device("cpu"))
        self.calls = 0

    def __call__(self, values: Any) -> torch.Tensor:
        self.calls += 1
        return super().__call__(values)


def test_ids_positions_columns_and_masks_go_up_in_one() -> None:
    upload = Counted()
    masks = {None: torch.rand(1, 1, 3, 7) > 0.5, 4: torch.rand(1, 1, 3, 7) > 0.5, 5: None}
    sent = send(upload, np.array([5, 6, 7]), np.array([1, 2, 2]), np.array([8, 9, 10]), masks)
    assert upload.calls == 1
    assert sent.tokens.tolist() == [[5, 6, 7]] and sent.positions.tolist() == [[1, 2, 2]]
    assert sent.columns.tolist() == [8, 9, 10]
    for window, mask in masks.items():
        assert mask is sent.masks[window] is None or torch.equal(sent.masks[window], mask)  # type: ignore[arg-type]


# -- the kernels themselves ------------------------------------------------------------------------


def test_kernels_agree_with_transformers_in_the_interpreter() -> None:
    """Norm, rotation and router in float32, float16 and bfloat16, at odd sizes."""
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-m", "tests.models.target.layer_kernel_cases"],
        cwd=ROOT,
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("right") == 3 * 5 + 1


@pytest.mark.slow
def test_the_compiler_takes_them_for_gpus_that_are_not_here() -> None:
    """Machine code of four compute capabilities, in bfloat16 and float32."""
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-m", "tests.models.target.compile_layer_kernels"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" bytes") == 4 * 4 * 2
