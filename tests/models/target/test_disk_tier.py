"""A target whose experts are on disk gives what one with experts in memory gives, to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from specfit.base.types import DraftTree, Selection, SpecfitError
from specfit.experts.cache import ExpertCache
from specfit.experts.copies import CopyEngine, CpuCopyEngine
from specfit.experts.disk_copies import DiskCopyEngine
from specfit.experts.disk_weights import DiskStore
from specfit.experts.engine import ExpertEngine
from specfit.experts.kernels.choice import choose_arithmetic
from specfit.experts.policy_cache import Movement, MovingCache
from specfit.experts.ram_store import RamStore
from specfit.models.target.checkpoint import Checkpoint
from specfit.models.target.loading import LoadedModel, load_model
from specfit.models.target.offloaded import OffloadedTarget
from tests.fakes.tiny_model import CPU, EXPERTS, Pair

TREE = DraftTree(
    tokens=np.array([20, 150, 33, 7]),
    parents=np.array([-1, -1, 0, 0]),
    depths=np.array([1, 1, 2, 2]),
    path_probs=np.array([6, 5, 4, 3]),
)


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packs")


def load(pair: Pair, packs: Path | None, layers: int | None = None) -> LoadedModel:
    return load_model(Checkpoint(pair.target_folder), torch.float32, CPU, layers, packs)


def target_of(
    loaded: LoadedModel, slots: int, in_flight: int, ram_slots: int | None = None
) -> OffloadedTarget:
    shape, store = loaded.geometry, loaded.store
    on_disk = isinstance(loaded.store, DiskStore)
    copies: CopyEngine = DiskCopyEngine(in_flight) if on_disk else CpuCopyEngine(in_flight)
    cache = ExpertCache(shape.layers, shape.experts, slots, staging_blocks=in_flight + 1)
    if ram_slots is not None and isinstance(store, DiskStore):
        moves = Movement(bypass=True)
        ram = MovingCache(shape.layers, shape.experts, ram_slots, in_flight + 1, moves)
        store = RamStore(store, ram)
    arithmetic = choose_arithmetic("auto", loaded.activation, CPU, loaded.format)
    return OffloadedTarget(
        loaded, ExpertEngine(store, cache, copies, arithmetic, CPU), (), None, CPU
    )


def story(pair: Pair, target: OffloadedTarget) -> Iterator[object]:
    """Everything that a prefill and four cycles say, their counters and where experts end up."""
    filled = target.prefill(np.concatenate(pair.prompts)[:30])
    yield filled.token, filled.routes.tolist(), [t.misses.tolist() for t in filled.traces]
    for root, nodes, kept in (
        (42, (0, 1, 3), [0, 1]),
        (5, (), [0]),
        (9, (0, 2), [0]),
        (1, (), [0]),
    ):
        routes = target.observe(root, TREE, seen=0)
        done = target.verify(root, TREE, Selection(nodes))
        target.keep(kept)
        counts = [a.tolist() for a in (done.trace.hits, done.trace.misses, done.trace.evictions)]
        yield done.tokens.tolist(), done.routes.tolist(), routes.nodes.tolist(), counts
    residency = target.residency().items()
    yield {name: array.tolist() for name, array in residency if not name.startswith("ram_")}
    assert target._kv._stored is not None
    yield target._kv._stored[:, :, :, : target.length].tolist()  # low bits included


@pytest.mark.parametrize("slots", [0, 3, EXPERTS // 2, EXPERTS])
@pytest.mark.parametrize("in_flight", [1, 2, 4])
def test_ids_routes_counters_and_bits_are_those_of_the_host_tier(
    pair: Pair, packs: Path, slots: int, in_flight: int
) -> None:
    host = list(story(pair, target_of(load(pair, None), slots, in_flight)))
    disk = list(story(pair, target_of(load(pair, packs), slots, in_flight)))
    assert host == disk
    for ram_slots in (0, 2, slots + 4):
        behind_ram = target_of(load(pair, packs), slots, in_flight, min(ram_slots, EXPERTS))
        assert list(story(pair, behind_ram)) == host, f"{ram_slots} slots in RAM"


def test_a_pack_is_made_once_and_holds_the_checkpoint(pair: Pair, packs: Path) -> None:
    first = load(pair, packs).store
    made = [(path.name, path.stat().st_mtime_ns) for path in packs.glob("*-5.experts")]
    again = load(pair, packs).store
    assert [(p.name, p.stat().st_mtime_ns) for p in packs.glob("*-5.experts")] == made
    assert len(made) == 1
    for store in (first, again):
        assert torch.equal(store.block(3, 5), pair.loaded.store.block(3, 5))
    fewer = load(pair, packs, layers=2).store
    assert (fewer.layers, len(list(packs.iterdir()))) == (2, 2), "other layers, another pack"


def test_a_restored_residency_reads_its_slots_from_disk(pair: Pair, packs: Path) -> None:
    loaded = load(pair, packs)
    worn = target_of(loaded, 6, 2)
    list(story(pair, worn))
    fresh = target_of(loaded, 6, 2)
    for block in fresh.engine._slots:
        block.fill_(float("nan"))
    fresh.restore(worn.residency())
    pairs = zip(fresh.engine._slots, worn.engine._slots, strict=True)
    assert all(torch.equal(here, there) for here, there in pairs)


def test_an_interrupted_pack_leaves_nothing(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from specfit.models.target import loading

    def stop(*_: object) -> None:
        raise SpecfitError("the checkpoint ends here")

    monkeypatch.setattr(loading._Read, "run", stop)
    with pytest.raises(SpecfitError, match="ends here"):
        load(pair, tmp_path)
    assert list(tmp_path.iterdir()) == []
