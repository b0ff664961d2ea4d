"""The README is checked: its commands parse, its folders exist."""

from __future__ import annotations

import re

import pytest

from tests.docs.real_commands import ROOT, check_command, commands_in

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_first_lines_are_the_two_commands() -> None:
    lines = [line for line in README.splitlines() if line][1:4]
    assert lines[0] == "```sh"
    assert lines[1].startswith("make run ") and lines[2].startswith("make test ")


@pytest.mark.parametrize("command", commands_in(README))
def test_commands_are_real(command: str) -> None:
    check_command(command)


def test_folders_and_artefact_scripts_exist() -> None:
    for name in re.findall(r"^\| `([a-z/]+/)` \|", README, re.MULTILINE):
        if not name.startswith("specfit/weights/"):  # made by training
            assert (ROOT / name).is_dir(), name
    for name in re.findall(r"`python (scripts/\w+\.py)`", README):
        assert (ROOT / name).exists(), name


def test_nothing_points_into_a_machine() -> None:
    assert not re.search(r"/(work|tmp|home|root)/|localhost|https?://(?!arxiv)", README)
