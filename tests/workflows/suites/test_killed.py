"""`make reproduce` killed at random moments and called again: the rows of an undisturbed one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from specfit.storage.suite import read_suite, variant_of
from tests.fakes.tiny_model import Runnable

ROOT = Path(__file__).parents[3]
KILLS = 10
SUITE = """
common: dataset=embedded_gsm8k limit=6 max_new_tokens=40 cache_slots=4 calibration.slots=4
smoke: limit=1
groups:
  - kind: run
    axes: [{gsm8k: ""}, {ar: selector=ar, ar_cache: selector=ar_cache, specfit: selector=specfit}]
"""


@pytest.mark.slow
def test_kills_at_random_moments_change_no_row(
    runnable: Runnable, calibration: Path, tmp_path: Path
) -> None:
    (tmp_path / "some.yaml").write_text(SUITE)
    overrides = (*runnable.overrides, f"calibration.path={calibration}")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    command = [sys.executable, "-m", "tests.fakes.killing", "reproduce"]
    places = [str(tmp_path), str(whole), str(killed), str(KILLS)]
    command += [*places, *overrides]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) >= KILLS // 2, "it was killed while it worked"

    suite = read_suite(whole, "some", variant_of(arguments=overrides))
    assert suite is not None and len(suite.cells) == 3
    for cell in suite.cells:
        for name in ("cycles.parquet", "requests.parquet"):
            ours, theirs = (cell.path(place) / name for place in (killed, whole))
            assert ours.read_bytes() == theirs.read_bytes(), f"{cell.label}: {name}"
