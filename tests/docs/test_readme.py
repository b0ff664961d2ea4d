"""The README is checked: its commands parse, its folders exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from specfit.base.config import from_hydra
from specfit.workflows.hydra_cli import HYDRA_FLAGS, compose

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.splitlines() if line.strip()]


def test_the_first_lines_are_the_two_commands() -> None:
    lines = [line for line in README.splitlines() if line][1:4]
    assert lines[0] == "```sh"
    assert lines[1].startswith("make run ") and lines[2].startswith("make test ")


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_real(command: str) -> None:
    words = shlex.split(command, comments=True)
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    elif words[:2] == ["python", "-m"]:
        assert (ROOT / f"{words[2].replace('.', '/')}.py").exists()
        composes(words[3:])
    else:
        assert words[0] == "python"
        source = (ROOT / words[1]).read_text(encoding="utf-8")
        for flag in (word for word in words[2:] if word.startswith("--")):
            assert f'"{flag}"' in source, f"{words[1]} has no {flag}"


def composes(words: list[str]) -> None:
    """Every job of a sweep is a config; flags are Hydra's."""
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.override_parser.overrides_parser import OverridesParser

    flags = [word for word in words if word.startswith("-")]
    assert set(flags) <= {"-m", *HYDRA_FLAGS}
    overrides = OverridesParser.create().parse_overrides([w for w in words if "=" in w])
    if not overrides:
        from_hydra(compose([]))
        return
    sweeps = any(override.is_sweep_override() for override in overrides)
    assert sweeps == ("-m" in flags), "a list is swept with -m"
    for batch in BasicSweeper.split_arguments(overrides, None):
        for job in batch:
            from_hydra(compose(job))


def test_folders_and_artefact_scripts_exist() -> None:
    for name in re.findall(r"^\| `([a-z/]+/)` \|", README, re.MULTILINE):
        if not name.startswith("specfit/weights/"):  # made by training
            assert (ROOT / name).is_dir(), name
    for name in re.findall(r"`python (scripts/\w+\.py)`", README):
        assert (ROOT / name).exists(), name


def test_nothing_points_into_a_machine() -> None:
    assert not re.search(r"/(work|tmp|home|root)/|localhost|https?://(?!arxiv)", README)
