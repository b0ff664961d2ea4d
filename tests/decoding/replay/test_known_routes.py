"""`routes=recording recording=<id>` from the command line: the atlas run's rows, no atlas asked."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from specfit.storage.rows import RunRows, load_run
from tests.fakes.tiny_model import Command, JobResult, Runnable

SMALL = ("limit=2", "max_new_tokens=8", "cache_slots=4", "selector=ecospec")
"""A rule that reads routes and needs no fit: its runs take no calibration."""


@pytest.fixture
def said(runnable: Runnable, tmp_path: Path) -> tuple[str, ...]:
    return (*runnable.overrides, f"results_dir={tmp_path}", *SMALL)


@pytest.fixture
def recording(said: tuple[str, ...], record_command: Command) -> str:
    """Of the same requests; its id."""
    ended = record_command(*said)
    assert ended.code == 0, ended.err
    return Path(ended.out.splitlines()[-1].partition(": ")[2]).name


def rows(ended: JobResult) -> RunRows:
    assert ended.code == 0, ended.err
    return load_run(Path(ended.out.splitlines()[-1].removeprefix("rows: ")))


def integers(run: RunRows) -> pd.DataFrame:
    """All columns of the cycles but the run's name and what floats decide."""
    return run.cycles.drop(columns=["run_id", "predicted_reward"])


@pytest.mark.slow
def test_rows_are_the_atlas_runs_and_the_table_counts(
    command: Command, said: tuple[str, ...], recording: str
) -> None:
    plain = rows(command(*said))
    ended = command(*said, "routes=recording", f"recording={recording}")
    known = rows(ended)
    assert known.info.run_id != plain.info.run_id and known.info.recording == recording
    pd.testing.assert_frame_equal(integers(known), integers(plain))
    assert known.requests["output_ids"].map(list).tolist() == (
        plain.requests["output_ids"].map(list).tolist()
    )
    assert known.requests["route_fallbacks"].tolist() == [0, 0]
    assert plain.requests["route_fallbacks"].isna().all()
    cycles = int((known.cycles["cycle"] > 0).sum())
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert f"recorded routes {cycles} of {cycles} cycles (0 asked the target)" in lines


@pytest.mark.slow
def test_what_was_not_recorded_asks_the_target(
    command: Command, said: tuple[str, ...], recording: str
) -> None:
    """A third request, which the recording lacks: same rows again, every cycle of it counted."""
    more = (*said, "limit=3")
    plain = rows(command(*more))
    known = rows(command(*more, "routes=recording", f"recording={recording}"))
    pd.testing.assert_frame_equal(integers(known), integers(plain))
    last = known.cycles[known.cycles["request_id"] == known.request_ids[-1]]
    assert known.requests["route_fallbacks"].tolist() == [0, 0, len(last) - 1]
