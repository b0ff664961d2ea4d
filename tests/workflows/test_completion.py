"""The shell's own completion, asked as a person would: what Tab would offer."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from specfit.__main__ import COMMANDS, main
from specfit.workflows.completion import script_of

TYPED = """
line='{line}'
COMP_LINE="$line"; COMP_POINT=${{#line}}; COMP_CWORD={at}
compopt() {{ :; }}
_specfit
echo "${{COMPREPLY[*]}}"
"""


def offered(line: str, at: int, tmp_path: Path) -> list[str]:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash to ask")
    script = tmp_path / "typed.sh"
    script.write_text(script_of("bash", COMMANDS) + TYPED.format(line=line, at=at))
    ended = subprocess.run([bash, str(script)], capture_output=True, text=True, check=True)
    return ended.stdout.split()


@pytest.mark.parametrize(
    ("line", "at", "expected"),
    [
        ("specfit rep", 1, {"replay"}),
        ("specfit run selector=eag", 4, {"eagle3", "eagle3_cache", "eagle3_full"}),
        ("specfit run cache_sl", 2, {"cache_slots=", "cache_slots=all", "cache_slots=fit"}),
        ("specfit run selector=ar compare=", 7, {"true", "false"}),
        ("specfit run hydra/launcher=j", 4, {"joblib"}),
        ("specfit run zebra", 2, set()),
    ],
)
def test_what_is_offered(line: str, at: int, expected: set[str], tmp_path: Path) -> None:
    assert set(offered(line, at, tmp_path)) == expected


def test_a_shell_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "zsh"]) == 0
    assert "bashcompinit" in capsys.readouterr().out
    for words in (["completion"], ["completion", "fish"]):
        assert main(words) == 2
        assert "name a shell" in capsys.readouterr().err
