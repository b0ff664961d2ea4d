from __future__ import annotations

from pathlib import Path

import pytest

from specfit.storage.find import find_twin, finished_runs
from specfit.storage.run_folder import RunStore
from tests.fakes.rows import info, manifest, part, store_run

PARTS = [part("a")]


def test_a_missing_folder_holds_no_runs(tmp_path: Path) -> None:
    assert list(finished_runs(tmp_path / "none")) == []
    assert find_twin(tmp_path / "none", info()) is None


def test_only_finished_runs_with_the_wanted_values_are_found(tmp_path: Path) -> None:
    store_run(tmp_path, PARTS, "b" * 12, selector="ar")
    store_run(tmp_path, PARTS, "a" * 12)
    unfinished = RunStore(tmp_path, "c" * 12)
    with unfinished.locked():
        unfinished.begin(manifest(["a"], "c" * 12, selector="ar"), "")
    assert [m.info.run_id for _, m in finished_runs(tmp_path)] == ["a" * 12, "b" * 12]
    assert [folder.name for folder, _ in finished_runs(tmp_path, selector="ar")] == ["b" * 12]


def test_no_row_is_read(tmp_path: Path) -> None:
    folder = store_run(tmp_path, PARTS, "b" * 12, selector="ar")
    for name in ("cycles", "requests", "timings"):
        (folder / f"{name}.parquet").write_bytes(b"")
    assert find_twin(tmp_path, info()) == folder


@pytest.mark.parametrize(
    "other",
    [
        {"requests_digest": "r2"},
        {"target_digest": "t2"},
        {"profile_digest": "p2"},
        {"dataset": "embedded_news"},
        {"model": "other"},
        {"dtype": "bfloat16"},
        {"profile": "rtx4090"},
        {"clock": "wall"},
        {"selector": "ar_cache"},
    ],
)
def test_a_run_of_something_else_is_no_twin(tmp_path: Path, other: dict[str, str]) -> None:
    store_run(tmp_path, PARTS, "b" * 12, **({"selector": "ar"} | other))
    assert find_twin(tmp_path, info()) is None


def test_the_device_matters_on_the_wall_clock_only(tmp_path: Path) -> None:
    for run_id, clock in (("b" * 12, "modelled"), ("c" * 12, "wall")):
        store_run(tmp_path, PARTS, run_id, selector="ar", clock=clock, device="another")
    assert find_twin(tmp_path, info()) == tmp_path / ("b" * 12)
    assert find_twin(tmp_path, info(clock="wall")) is None


def test_the_closest_twin_then_the_lowest_id(tmp_path: Path) -> None:
    for run_id, repeat in (("b" * 12, 0), ("c" * 12, 1), ("d" * 12, 1)):
        store_run(tmp_path, PARTS, run_id, selector="ar", repeat=repeat)
    assert find_twin(tmp_path, info(repeat=1)) == tmp_path / ("c" * 12)
    assert find_twin(tmp_path, info(repeat=2)) == tmp_path / ("b" * 12)


def test_a_run_is_not_its_own_twin(tmp_path: Path) -> None:
    store_run(tmp_path, PARTS, "b" * 12, selector="ar")
    assert find_twin(tmp_path, info("b" * 12, selector="ar")) is None
