"""`specfit <command>`: the list, the version, what is passed on and what is refused."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from specfit import __version__
from specfit.__main__ import COMMANDS, main
from tests.fakes.tiny_model import Runnable

ROOT = Path(__file__).resolve().parents[2]


def test_every_door_is_listed_with_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    doors = {path.stem for path in (ROOT / "specfit").glob("*.py")}
    assert set(COMMANDS) == doors - {"__init__", "__main__", "api"}
    for words in ([], ["--help"]):
        assert main(words) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()[2:-3]]
        assert [line[0] for line in lines] == list(COMMANDS)
        assert all(len(line) > 4 for line in lines)


def test_the_version_and_the_script_are_declared(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"specfit {__version__}\n"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"specfit": "specfit.__main__:main"}


def test_an_unknown_command_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replai"]) == 2
    assert capsys.readouterr().err == "specfit: replai is no command; did you mean replay?\n"
    assert main(["x"]) == 2
    assert "use one of run, record" in capsys.readouterr().err


def test_the_rest_of_the_line_is_the_commands(
    runnable: Runnable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["specfit"])
    small = ["selector=ar", "limit=1", "max_new_tokens=2", f"results_dir={tmp_path}"]
    with pytest.raises(SystemExit) as ended:
        main(["run", *runnable.overrides, *small])
    assert ended.value.code == 0 and f"rows: {tmp_path}/runs/" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["run", "limit=0"])
    assert ended.value.code == 2
    with pytest.raises(SystemExit) as ended:
        main(["explain", "nothing", "other", "--results", str(tmp_path)])
    assert ended.value.code == 2
