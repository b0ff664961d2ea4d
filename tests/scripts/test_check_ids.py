"""scripts/check/ids.py: the run's own cap, its folder, and no silence where nothing matches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.fakes.tiny_model import Command, Runnable

SCRIPT = Path(__file__).parents[2] / "scripts" / "check" / "ids.py"


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True)


def test_runs_are_compared_at_their_own_caps(
    command: Command, runnable: Runnable, tmp_path: Path
) -> None:
    where = f"results_dir={tmp_path / 'results'}"
    for cap in ("3", "5"):
        small = ("selector=ar", "limit=1", f"max_new_tokens={cap}", where)
        assert command(*runnable.overrides, *small).code == 0
    ended = check(*runnable.overrides, where)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "1 of 1 requests equal to generate, at most 3 new" in ended.stdout
    assert "1 of 1 requests equal to generate, at most 5 new" in ended.stdout
    nothing = check(*runnable.overrides, f"results_dir={tmp_path / 'other'}")
    assert nothing.returncode == 2 and nothing.stderr.startswith("specfit: nothing was compared: 0")
    wrong = check("datset=x")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
