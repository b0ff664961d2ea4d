"""What table 5 and the sweep figure are made from, on a random pair: record, replay, study."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.tiny_model import Command, Runnable, in_process

STUDY = Path(__file__).parents[2] / "scripts" / "studies" / "study.py"

pytestmark = pytest.mark.slow


@pytest.fixture
def replay(
    record_command: Command,
    runnable: Runnable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Path:
    """A replay of SpecFit over three recorded requests: its folder."""
    said = (f"results_dir={tmp_path}", "cache_slots=4", "calibration.slots=4")
    ended = record_command(*runnable.overrides, *said, "limit=3", "max_new_tokens=12")
    assert ended.code == 0, ended.err
    recording = ended.out.splitlines()[-1].partition(": ")[2]
    again = in_process("replay", monkeypatch, capsys)(*said, f"recording={recording}")
    assert again.code == 0, again.err
    return Path(again.out.splitlines()[-1].removeprefix("rows: "))


def made(name: str, folder: Path, *arguments: str) -> dict[str, Any]:
    """The JSON that the study leaves below results/bench."""
    command = [sys.executable, str(STUDY), name, str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    path = Path(done.stdout.splitlines()[-1].removeprefix("rows: "))
    return json.loads(path.read_text())  # type: ignore[no-any-return]


def test_a_study_and_its_sheets(replay: Path) -> None:
    from specfit.report.artifacts.rules import fits_sheet, line_sheet, rules_sheet

    found = made("rules", replay)
    assert found["requests"] == 3
    for weighting in found["weightings"].values():
        rules = weighting["rules"]
        assert 0 <= rules["gap"] <= rules["relative_bound"] + 1e-12
        assert sum(weighting["recorded"]["tokens_ratio"]) >= rules["cycles"] > 0
        assert weighting["line"]["loss"] >= 0 and weighting["line"]["limit_loss"] >= 0
    every, started = (found["weightings"][n] for n in ("every position", "cycles of the run"))
    assert every["rules"]["cycles"] == 3 * 11, "one position per token but the last"
    assert started["rules"]["cycles"] <= every["rules"]["cycles"]
    for sheet in (rules_sheet(found), line_sheet([found]), fits_sheet([found])):
        assert all(cell.text for row in sheet.cells() for cell in row[1:])


def test_a_sweep_starts_at_the_replay_and_has_every_point(replay: Path) -> None:
    from specfit.report.artifacts.sweeps import AXES, curves

    drawn = curves([made("sweeps", replay)])
    assert {curve.axis for curve in drawn} == set(AXES)
    assert {curve.system for curve in drawn} == {"specfit", "eagle3_cache"}
    assert all(ratio.value is not None for curve in drawn for ratio in curve.ratios)


def test_a_run_without_a_recording_is_refused(
    command: Command, runnable: Runnable, tmp_path: Path
) -> None:
    said = (f"results_dir={tmp_path}", "cache_slots=4", "limit=1", "max_new_tokens=4")
    ended = command(*runnable.overrides, *said, "selector=ar")
    folder = ended.out.splitlines()[-1].removeprefix("rows: ")
    for name in ("rules", "sweeps"):
        arguments = [sys.executable, str(STUDY), name, folder]
        done = subprocess.run(arguments, capture_output=True, text=True)
        assert done.returncode == 2 and done.stderr.startswith(f"specfit: {folder} is no replay")
        assert len(done.stderr.splitlines()) == 1
