"""scripts/check/ids.py: the run's own cap, its folder, and no silence where nothing matches."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.tiny_model import Command, Runnable, in_process_script

FOLDER = Path(__file__).parents[2] / "scripts" / "check"


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`python scripts/check/ids.py ..`, in this process."""
    return in_process_script(FOLDER, "ids", monkeypatch, capsys)


def test_runs_are_compared_at_their_own_caps(
    check: Command, command: Command, runnable: Runnable, tmp_path: Path
) -> None:
    where = f"results_dir={tmp_path / 'results'}"
    for cap in ("3", "5"):
        small = ("selector=ar", "limit=1", f"max_new_tokens={cap}", where)
        assert command(*runnable.overrides, *small).code == 0
    ended = check(*runnable.overrides, where)
    assert ended.code == 0, ended.out + ended.err
    assert "1 of 1 requests equal to generate, at most 3 new" in ended.out
    assert "1 of 1 requests equal to generate, at most 5 new" in ended.out
    nothing = check(*runnable.overrides, f"results_dir={tmp_path / 'other'}")
    assert nothing.code == 2 and nothing.err.startswith("specfit: nothing was compared: 0")
    wrong = check("datset=x")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
