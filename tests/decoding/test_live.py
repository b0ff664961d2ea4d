"""One process reads a checkpoint once, and keeps no two of them."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hydra")

from specfit.base.config import from_hydra  # noqa: E402
from specfit.base.types import SpecfitError  # noqa: E402
from specfit.decoding import expert_cache_factory, live  # noqa: E402
from specfit.decoding.resolve import resolve  # noqa: E402
from specfit.experts.policy_cache import MovingCache  # noqa: E402
from specfit.experts.ram_store import RamStore  # noqa: E402
from specfit.workflows.hydra_cli import compose  # noqa: E402
from tests.fakes.tiny_model import Pair, Runnable  # noqa: E402


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


# -- experts on disk behind RAM --------------------------------------------------------------------


def on_disk(pair: Pair, tmp_path: Path, *overrides: str) -> Any:
    disk = ("gpu=local", "device=cpu", "offload.tier=disk", f"offload.pack={tmp_path}")
    return facts_of(pair, *disk, "selector=ar_cache", *overrides)


def test_slots_in_ram_are_the_jobs_own_and_obey_its_policy(pair: Pair, tmp_path: Path) -> None:
    without = live.build_runtime(on_disk(pair, tmp_path), 4, drafts=False)
    assert without.engine.ram is None
    ram_slots = "offload.ram_slots=9"
    first = live.build_runtime(on_disk(pair, tmp_path, ram_slots), 4, drafts=False)
    assert first.loaded is without.loaded, "what is on disk is opened once"
    assert first.engine.ram is not None and first.engine.ram.cache.n_slots == 9
    assert first.disk_reads in ("direct", "dropped") and first.locked_share is None


def test_a_policy_that_pins_knows_the_most_used_in_ram_too(
    runnable: Runnable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expert_cache_factory, "COMMITTED", 3)
    said = ["gpu=local", "device=cpu", "offload.tier=disk", f"offload.pack={tmp_path}"]
    said += ["offload.ram_slots=9", "policy=static", "selector=ar_cache", "cache_slots=4"]
    spec = resolve(from_hydra(compose([*runnable.overrides, *said])))
    pinned = live.build_runtime(spec, 4, drafts=False).engine
    assert isinstance(pinned.cache, MovingCache) and pinned.ram is not None
    assert pinned.cache._known.any() and (pinned.cache._known == pinned.ram.cache._known).all()
    assert not pinned.ram.cache.resident_mask().any(), "what counted them left nothing behind"


def test_on_a_gpu_blocks_from_disk_come_through_locked_memory(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Registrar:
        granted = 1

        def register(self, address: int, size: int) -> int:
            self.granted -= 1
            return 0 if self.granted >= 0 else 2

        def unregister(self, address: int) -> int:
            return 0

        def clear_error(self) -> None:
            pass

    monkeypatch.setattr(live, "CudaRegistrar", Registrar)
    spec = on_disk(pair, tmp_path)
    card = replace(spec, device=torch.device("cuda"))
    store = live.build_runtime(spec, 4, drafts=False).loaded.store
    assert live._behind_ram(spec, store) is store
    ram = live._behind_ram(card, store)
    assert isinstance(ram, RamStore) and ram.cache.n_slots == 0
    assert ram.lock_report is not None and ram.lock_report.is_whole
    Registrar.granted = 0
    live._behind_ram(card, store)
    assert "0 of 0 GiB locked (CUDA error 2" in capsys.readouterr().err
