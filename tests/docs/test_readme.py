"""The README is checked: its commands parse, its tables are current, its number is a row's."""

from __future__ import annotations

import re

import pytest

from scripts.document import device, results
from specfit.__main__ import COMMANDS
from specfit.base.paths import CONF
from specfit.report.artifacts.systems import runs_of
from specfit.report.degenerate import loops_of
from specfit.report.quantities import QUANTITIES
from specfit.report.reader import ResultsReader
from tests.docs.real_commands import ROOT, check_command, commands_in

README = (ROOT / "README.md").read_text(encoding="utf-8")
LINKS = ("https://arxiv.org/abs/",)
"""The only places outside that the README may link to; images are our own."""
LINES = 145


@pytest.fixture(scope="module")
def reader() -> ResultsReader:
    return ResultsReader(ROOT / "results")


def test_it_begins_with_a_number_a_picture_and_the_results(reader: ResultsReader) -> None:
    first = README.index("modelled clock"), README.index("![")
    assert first[0] < first[1] < README.index(results.BEGIN) < README.index("## ")
    runs = runs_of(reader, "table_3")
    speed = QUANTITIES["speed"].ratio(runs["specfit"], runs["eagle3_cache"])
    value = f"**{speed.value:.2f}x**"
    interval = f"(95 % {speed.low:.2f}-{speed.high:.2f}, n = {speed.n}"
    assert value in README and interval in README


def test_the_gain_without_looping_answers_stands_beside_it(reader: ResultsReader) -> None:
    runs = runs_of(reader, "table_3")
    loops = loops_of(runs["specfit"])
    speed = QUANTITIES["speed"].ratio(runs["specfit"], runs["eagle3_cache"], loops)
    told = f"{speed.value:.2f}x ({speed.low:.2f}-{speed.high:.2f}, n = {speed.n})"
    assert not loops or told in README.replace("\n", " ")
    bracket = f"{speed.value:.2f} [{speed.low:.2f}, {speed.high:.2f}]"
    assert not loops or bracket in (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")


def test_it_stays_short() -> None:
    assert len(README.splitlines()) <= LINES


def test_its_tables_are_current(reader: ResultsReader) -> None:
    rewritten = results.rewritten(README, reader)
    assert rewritten == README, "python scripts/document/results.py brings it up to date"
    assert device.rewritten(README) == README


@pytest.mark.parametrize(
    "command", [c for c in commands_in(README) if not c.startswith(("pip", "eval"))]
)
def test_commands_are_real(command: str) -> None:
    check_command(command)


def test_every_selector_is_in_its_table() -> None:
    listed = set(
        re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.+?) \|", README, re.MULTILINE)))
    )
    assert listed == {path.stem for path in (CONF / "selector").glob("*.yaml")}


def test_commands_that_are_named_exist() -> None:
    for name in re.findall(r"specfit\.(\w+)", README):
        assert name in COMMANDS, name


def test_links_and_images_are_on_the_list() -> None:
    for target in re.findall(r"https?://[^\s)]+", README):
        assert target.startswith(LINKS), target
    for image in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README):
        assert image.startswith("docs/images/") and (ROOT / image).is_file()


def test_nothing_points_into_a_machine() -> None:
    assert not re.search(r"/(work|tmp|home|root)/|localhost", README)
