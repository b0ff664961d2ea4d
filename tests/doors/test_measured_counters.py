"""Experts on disk under this machine's clock count what the modelled clock's run counts, behind
slots in RAM as well."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from specfit.base.config import from_hydra, hashed_part
from specfit.decoding.calibration.files import _identity_parts, calibration_id_of
from specfit.decoding.resolve import resolve
from specfit.storage.calibration_files import calibration_path
from specfit.workflows.hydra_cli import compose
from tests.fakes.tiny_model import RUN_EXPERTS, RUN_LAYERS, Command, Runnable

SMALL = ("limit=3", "max_new_tokens=6", "cache_slots=4", "calibration.slots=4", "compare=false")
TIMES = ("_ns", "run_id")
THROUGH_RAM = ["ram_hit_experts", "read_experts", "read_bytes"]


def same_fit(calibration: Path, line: list[str], results: Path) -> None:
    """Files the fit as that of the run which `line` asks for: a fit of its own time would choose
    other trees, and what is counted depends on the trees."""
    spec = resolve(from_hydra(compose(line)))
    name = calibration_id_of(spec)
    path = calibration_path(name, results)
    path.parent.mkdir(parents=True, exist_ok=True)
    own = {"calibration_id": name, "identity": hashed_part(_identity_parts(spec))}
    path.write_text(json.dumps(json.loads(calibration.read_text()) | own))


@pytest.mark.parametrize("selector", ["ar", "ar_cache", "eagle3_cache", "chain_k", "specfit"])
def test_ids_and_every_counter_are_those_of_the_modelled_run(
    command: Command, runnable: Runnable, calibration: Path, tmp_path: Path, selector: str
) -> None:
    found = []
    settings = {
        "modelled": ["gpu.clock=modelled", "gpu.billed=self"],
        "measured": ["gpu=local", "offload.tier=disk", f"offload.pack={tmp_path / 'packs'}"],
    }
    for name, setting in settings.items():
        results = tmp_path / name
        line = [*runnable.overrides, *SMALL, *setting, f"selector={selector}"]
        line += ["device=cpu", f"results_dir={results}"]
        if selector == "specfit":
            same_fit(calibration, line, results)
        ended = command(*line)
        assert ended.code == 0, ended.err
        (folder,) = [f for f in (results / "runs").iterdir() if f.is_dir()]
        cycles = pd.read_parquet(folder / "cycles.parquet")
        requests = pd.read_parquet(folder / "requests.parquet")
        kept = [column for column in cycles if not column.endswith(TIMES)]
        found.append((cycles[kept], [ids.tolist() for ids in requests.output_ids], requests))
    (ours, ids, modelled), (theirs, again, wall) = found
    pd.testing.assert_frame_equal(ours, theirs)
    assert ids == again and int(ours.transferred_experts.sum()) > 0
    assert set(wall.disk_reads) <= {"direct", "dropped"} and modelled.disk_reads.isna().all()
    if selector == "specfit":
        assert int(ours.verified_nodes.sum()) > 0, "a fit that verifies nothing compares nothing"


@pytest.mark.parametrize("settings", [["selector=ar"], ["selector=eagle3_cache", "policy=lfu"]])
def test_slots_in_ram_change_where_copies_come_from_and_nothing_else(
    command: Command, runnable: Runnable, tmp_path: Path, settings: list[str]
) -> None:
    found = []
    for ram_slots in (0, 6, RUN_EXPERTS):
        results = tmp_path / str(ram_slots)
        line = [*runnable.overrides, *SMALL, "gpu=local", "device=cpu", *settings]
        line += ["offload.tier=disk", f"offload.pack={tmp_path}", f"results_dir={results}"]
        ended = command(*line, f"offload.ram_slots={ram_slots}")
        assert ended.code == 0, ended.err
        (folder,) = [f for f in (results / "runs").iterdir() if f.is_dir()]
        cycles = pd.read_parquet(folder / "cycles.parquet")
        requests = pd.read_parquet(folder / "requests.parquet")
        found.append((cycles, [ids.tolist() for ids in requests.output_ids]))
    (without, ids), *behind_ram = found
    assert without[THROUGH_RAM].isna().all(axis=None)
    shared = [c for c in without if not c.endswith(TIMES) and c not in THROUGH_RAM]
    for cycles, again in behind_ram:
        assert ids == again
        pd.testing.assert_frame_equal(cycles[shared], without[shared])
        copied = cycles.transferred_experts + cycles.prefetched_experts
        assert (cycles.ram_hit_experts + cycles.read_experts == copied).all()
        expert_bytes = cycles.transferred_bytes.sum() // cycles.transferred_experts.sum()
        assert (cycles.read_bytes == cycles.read_experts * expert_bytes).all()
        assert 0 < cycles.read_experts.sum() < copied.sum()
    few, all_of_them = (cycles.read_experts.sum() for cycles, _ in behind_ram)
    assert all_of_them <= min(few, RUN_LAYERS * RUN_EXPERTS), "each is read once at most"
