"""scripts/check/replay.py on a random pair: live runs, their recording, then a spoilt row."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from specfit.report.live_check import differing_columns, first_difference, reward_difference
from specfit.storage.rows import load_run
from specfit.storage.tables import read_table, write_table
from tests.fakes.tiny_model import Command, Runnable

ROOT = Path(__file__).parents[2]

FRAME = pd.DataFrame(
    {
        "run_id": "a",
        "cycle": [0, 1, 2],
        "hit_experts": [3, 4, 5],
        "predicted_reward": pd.array([None, 1_000_000, 2_000_000], dtype="Int64"),
    }
)


def changed(column: str, row: int, value: object) -> pd.DataFrame:
    frame = FRAME.copy()
    frame.loc[row, column] = value
    return frame


def test_every_column_counts_but_the_runs_name() -> None:
    assert differing_columns(FRAME, FRAME.assign(run_id="b")) == []
    assert differing_columns(FRAME, changed("hit_experts", 1, 9)) == ["hit_experts"]
    assert differing_columns(FRAME, FRAME.iloc[:2]) == ["cycle"]
    assert first_difference(FRAME, changed("hit_experts", 1, 9)) == 1
    assert first_difference(FRAME, FRAME.iloc[:2]) == 2


def test_a_reward_may_differ_a_little_and_must_be_there() -> None:
    near, far = changed("predicted_reward", 1, 1_000_100), changed("predicted_reward", 1, 1_000_101)
    assert reward_difference(FRAME, near) == pytest.approx(1e-4)
    assert differing_columns(FRAME, near) == []
    assert differing_columns(FRAME, far) == ["predicted_reward"]
    assert differing_columns(FRAME, changed("predicted_reward", 1, None)) == ["predicted_reward"]


def check(results: Path) -> subprocess.CompletedProcess[str]:
    arguments = [
        sys.executable,
        str(ROOT / "scripts" / "check" / "replay.py"),
        "--results",
        results,
    ]
    return subprocess.run(arguments, capture_output=True, text=True, cwd=results)


@pytest.mark.slow
def test_live_runs_equal_their_replays_and_a_spoilt_row_is_named(
    command: Command, record_command: Command, runnable: Runnable, tmp_path: Path
) -> None:
    said = (*runnable.overrides, f"results_dir={tmp_path}", "limit=3", "max_new_tokens=8")
    for selector, slots in (("ar", 4), ("ar_cache", 4), ("eagle3_cache", 4), ("eagle3_cache", 9)):
        ended = command(*said, f"selector={selector}", f"cache_slots={slots}")
        assert ended.code == 0, ended.err
    assert check(tmp_path).returncode == 1, "nothing was recorded yet"
    assert record_command(*said, "cache_slots=4").code == 0

    done = check(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| selector | 0 slots | 4 slots | 9 slots |" in done.stdout
    assert "| eagle3_cache | - | 3/3 | 3/3 |" in done.stdout
    assert "| ar | 3/3 | - | - |" in done.stdout
    assert "4 runs" in done.stdout and "0 requests differ" in done.stdout

    request = spoil(Path(ended.out.splitlines()[-1].removeprefix("rows: ")))
    done = check(tmp_path)
    assert "| eagle3_cache | - | 3/3 | 2/3 |" in done.stdout, "the third was replayed by itself"
    assert f"{request}: " in done.stdout and "differs in demand_experts, hit_experts" in done.stdout
    assert done.returncode == ("NOT a near-tie" in done.stdout)


def spoil(folder: Path) -> str:
    """One more expert, resident, in every cycle of the second request."""
    request, path = load_run(folder).request_ids[1], folder / "cycles.parquet"
    table = read_table(path)
    rows = table.to_pandas()
    rows.loc[rows["request_id"] == request, ["demand_experts", "hit_experts"]] += 1
    write_table(pa.Table.from_pandas(rows, schema=table.schema), path)
    return request
