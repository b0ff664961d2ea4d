"""A run beside the other systems: replays are the rows of live runs, and it costs one recording."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from specfit.storage.rows import RunRows, load_run
from tests.fakes.tiny_model import Command, JobResult, Runnable

SMALL = ("limit=2", "max_new_tokens=8", "cache_slots=4")
SYSTEMS = ("ar", "ar_cache", "eagle3_cache")
OWN = "ecospec"
"""A rule that drafts and needs no fit."""


@pytest.fixture
def said(runnable: Runnable, tmp_path: Path) -> tuple[str, ...]:
    return (*runnable.overrides, f"results_dir={tmp_path}", *SMALL)


def ok(ended: JobResult) -> JobResult:
    assert ended.code == 0, ended.err
    return ended


def by_selector(folder: Path) -> dict[str, RunRows]:
    runs = [load_run(one) for one in folder.iterdir() if (one / "manifest.json").exists()]
    return {run.info.selector: run for run in runs}


def test_the_other_systems_are_replays_with_the_rows_of_live_runs(
    command: Command, said: tuple[str, ...], tmp_path: Path
) -> None:
    ended = ok(command(*said, f"selector={OWN}", "compare=true"))
    names = [line.split("  ")[0] for line in ended.out.splitlines()]
    for name in ("AR", "AR + cache", "EAGLE-3 + cache", "EcoSpec"):
        assert names.count(name) == 1
    assert re.search(r"^AR \+ cache .* 1 .* 2/2$", ended.out, re.MULTILINE)
    replays = by_selector(tmp_path / "replays")
    assert set(replays) == set(SYSTEMS)
    assert set(by_selector(tmp_path / "runs")) == {OWN}, "nothing else ran live"
    for name in SYSTEMS:
        ok(command(*said, f"selector={name}", "compare=false"))
    live = by_selector(tmp_path / "runs")
    for name, replay in replays.items():
        assert replay.info.run_id == live[name].info.run_id
        pd.testing.assert_frame_equal(replay.cycles, live[name].cycles)
        ids = [run.requests["output_ids"].map(list).tolist() for run in (replay, live[name])]
        assert ids[0] == ids[1]
    again = ok(command(*said, f"selector={OWN}", "compare=true"))
    assert table_of(again) == table_of(ended), "live rows are read where they are there"


def table_of(ended: JobResult) -> list[str]:
    lines = ended.out.splitlines()
    start = next(i for i, line in enumerate(lines) if "tokens/s" in line and "against" in line)
    return lines[start : start + 6]


def test_alone_it_records_nothing(command: Command, said: tuple[str, ...], tmp_path: Path) -> None:
    ended = ok(command(*said, f"selector={OWN}", "compare=false"))
    assert "decode speed" in ended.out and "against" not in ended.out
    ended = ok(command(*said, f"selector={OWN}"))  # not a packaged model: seconds are not known
    assert "decode speed" in ended.out
    assert not (tmp_path / "recordings").exists() and not (tmp_path / "replays").exists()


def test_on_the_wall_clock_finished_runs_are_compared(
    command: Command, said: tuple[str, ...], tmp_path: Path
) -> None:
    ok(command(*said, "gpu=local", "selector=ar_cache"))
    ended = ok(command(*said, "gpu=local", f"selector={OWN}", "compare=true"))
    assert "(measured)" in ended.out and "modelled" not in ended.out
    names = [line.split("  ")[0] for line in ended.out.splitlines()]
    assert "AR + cache" in names and "EAGLE-3 + cache" not in names
    assert not (tmp_path / "recordings").exists() and not (tmp_path / "replays").exists()


def test_the_key_is_of_no_id(command: Command, said: tuple[str, ...], tmp_path: Path) -> None:
    for words in (("compare=false",), ("compare=true", "show=1"), ()):
        ok(command(*said, "selector=ar_cache", *words))
    assert len(list((tmp_path / "runs").glob("*/manifest.json"))) == 1


def test_what_was_waited_is_said_last_and_is_all_of_it(
    command: Command, said: tuple[str, ...]
) -> None:
    lines = ok(command(*said, f"selector={OWN}", "compare=true")).out.splitlines()
    elapsed = [line for line in lines if line.startswith("elapsed ")]
    assert len(elapsed) == 1 and "exact routes" in elapsed[0] and "off the clock" in elapsed[0]
    assert any(line.startswith("next: python -m specfit.show ") for line in lines)
    assert lines[-1].startswith("rows: ")


def test_answers_are_shown_with_the_accepted_drafts_marked(
    command: Command, said: tuple[str, ...]
) -> None:
    ended = ok(command(*said, f"selector={OWN}", "show=1", "compare=false"))
    assert len(re.findall(r"^-- evaluation-\d+: ok$", ended.out, re.MULTILINE)) == 1
    for word in ("prompt: ", "answer: ", "reference: "):
        assert f"\n{word}" in ended.out


def test_a_sweep_has_a_line_a_job_and_one_table(command: Command, said: tuple[str, ...]) -> None:
    ended = ok(command("-m", *said[:-1], "selector=ar_cache,eagle3_cache", "cache_slots=4,8"))
    lines = ended.out.splitlines()
    jobs = [line for line in lines if ", run " in line]
    assert len(jobs) == 4 and all("tokens/s (modelled)" in line for line in jobs)
    start = next(i for i, line in enumerate(lines) if line.startswith("tokens/s "))
    assert lines[start].split()[1:] == ["4", "slots", "8", "slots"]
    assert [line.split("  ")[0] for line in lines[start + 1 :]] == ["AR + cache", "EAGLE-3 + cache"]
    speeds = [re.search(r"([\d.]+) tokens/s", line).group(1) for line in jobs]  # type: ignore[union-attr]
    assert lines[start + 1].split()[-2:] == speeds[:2]
