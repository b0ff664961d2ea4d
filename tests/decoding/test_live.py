"""One process reads a checkpoint once, and keeps no two of them."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hydra")

from specfit.base.config import from_hydra  # noqa: E402
from specfit.base.types import SpecfitError  # noqa: E402
from specfit.decoding import live  # noqa: E402
from specfit.decoding.resolve import resolve  # noqa: E402
from specfit.workflows.hydra_cli import compose  # noqa: E402
from tests.fakes.tiny_model import Pair  # noqa: E402


def facts_of(pair: Pair, *overrides: str) -> Any:
    named = [f"model.path={pair.target_folder}", f"drafter.path={pair.drafter_folder}"]
    return resolve(from_hydra(compose([*named, "gpu.billed=self", "cache_slots=4", *overrides])))


def test_jobs_of_a_sweep_share_one_store_and_another_model_replaces_it(pair: Pair) -> None:
    first = live.build_runtime(facts_of(pair), 4, drafts=True)
    second = live.build_runtime(facts_of(pair, "selector=ar_cache"), 12, drafts=False)
    assert second.loaded is first.loaded
    slots = weakref.ref(first.engine)
    store = weakref.ref(first.loaded.store)
    embedding = first.loaded.model.model.embed_tokens.weight
    assert first.head is not None
    assert first.head.embed_tokens.weight.data_ptr() == embedding.data_ptr(), "one copy of both"
    assert first.locked_share is None
    del first, embedding
    gc.collect()
    assert slots() is None, "the slots of the machine before are gone"
    del second
    other = live.build_runtime(facts_of(pair, "model.dtype=bfloat16"), 4, drafts=False)
    assert other.loaded.format.dtype == torch.bfloat16
    assert store() is None, "two stores may not fit"


def test_graphs_are_refused_where_there_is_no_gpu(pair: Pair) -> None:
    with pytest.raises(SpecfitError, match=r"needs device=cuda; use gpu.graphs=false"):
        live.build_runtime(facts_of(pair, "gpu.graphs=true"), 4, drafts=False)


def test_graphs_are_refused_of_layers_that_are_not_fused(pair: Pair) -> None:
    spec = facts_of(pair, "gpu.graphs=true", "gpu.kernel=loop")
    with pytest.raises(SpecfitError, match=r"gpu.kernel=loop leaves out; use gpu.kernel=auto"):
        live.refuse_unlivable(replace(spec, device=torch.device("cuda")))


def test_layers_are_fused_on_a_gpu_and_never_on_a_cpu(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gpu.kernel=loop is the way back to transformers' own layers."""
    pytest.importorskip("triton")
    monkeypatch.setattr(live, "CudaCapture", lambda device: device)
    spec = facts_of(pair)
    assert live.fused_layers(spec) == (None, None)
    cuda = torch.device("cuda")
    kernels, capture = live.fused_layers(replace(spec, device=cuda))
    assert kernels is not None and capture is None
    loop = replace(facts_of(pair, "gpu.kernel=loop"), device=cuda)
    assert live.fused_layers(loop) == (None, None)
    graphs = replace(facts_of(pair, "gpu.graphs=true"), device=cuda)
    kernels, capture = live.fused_layers(graphs)
    assert kernels is not None and capture == cuda
