"""`--help` of each command is its own: purpose, examples that are real, values that it reads."""

from __future__ import annotations

import pytest

from specfit.__main__ import COMMANDS
from specfit.base.config import declared
from specfit.workflows.command_help import ABOUT, help_template
from specfit.workflows.hydra_cli import unknown_key
from tests.docs.real_commands import check_command

WITHOUT_HYDRA = {"explain", "show"}
EXAMPLES = [
    f"python -m specfit.{name} {words}"
    for name, about in ABOUT.items()
    for words, _ in about.examples
    if "<" not in words
]


def test_every_command_has_a_help_of_its_own() -> None:
    assert set(ABOUT) == set(COMMANDS) - WITHOUT_HYDRA
    texts = {name: help_template(name) for name in ABOUT}
    assert len(set(texts.values())) == len(texts)
    for name, text in texts.items():
        assert text.startswith(f"python -m specfit.{name} ") and ABOUT[name].purpose in text


@pytest.mark.parametrize("command", EXAMPLES)
def test_its_examples_are_commands(command: str) -> None:
    check_command(command)


def test_what_is_hidden_is_a_key_and_what_is_read_is_shown() -> None:
    known = {name for name, _ in declared()}
    for about in ABOUT.values():
        assert set(about.hides) <= known
    assert "\n  record.batch=8" in help_template("record")
    assert "\n  record.batch" not in help_template("run")
    assert "\n  selector.k" in help_template("run")
    assert "lru" in help_template("run") and "trace=" not in help_template("doctor")
    assert "\n  selector=ar, " in help_template("run")
    assert "\n  selector=" not in help_template("advise"), "advise decides it"


def test_an_experiment_is_a_suite_and_the_suites_are_named() -> None:
    said = unknown_key("experiment")
    assert "make reproduce SUITE=<name>" in said and "table_2, table_3" in said
