"""The documents name what is there: files, tests, commands, rooms, columns, each other."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from scripts.document import rows as document_rows
from specfit.__main__ import COMMANDS
from tests.docs.real_commands import ROOT, check_command, commands_in
from tests.test_layering import ROOMS

DOCS = ROOT / "docs"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
TEXTS = {path.name if path.parent == ROOT else f"docs/{path.name}": path for path in DOCUMENTS}
SOURCES = [
    path
    for top in ("specfit", "scripts", "tests", "conf", "experiments")
    for path in (ROOT / top).rglob("*")
    if path.suffix in (".py", ".sh", ".yaml")
]
OUTSIDE = ("run.yaml", "thrifty/__init__.py", "thrifty/conf/__init__.py")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_page_of_rows_is_current() -> None:
    written = document_rows.PAGE.read_text(encoding="utf-8")
    assert written == document_rows.page(), "python scripts/document/rows.py writes it"


def test_the_rooms_are_those_of_the_layering() -> None:
    page = read("docs/architecture.md")
    lines = re.findall(r"^\| `(\w+)` \| (.+?) \| .+ \|$", page, re.MULTILINE)
    told = {room: set(re.findall(r"`(\w+)`", may)) for room, may in lines if room in ROOMS}
    assert list(told) == list(ROOMS)
    assert told.pop("workflows") == set() and "| `workflows` | every room |" in page
    assert told == {room: may for room, may in ROOMS.items() if room != "workflows"}


@pytest.mark.parametrize("name", TEXTS)
def test_files_and_tests_that_are_named_exist(name: str) -> None:
    """A path from the top, or a file's name alone. Files of an example are in its own blocks."""
    whole = read(name)
    examples = re.findall(r"^# ([\w./]+)", whole, re.MULTILINE)  # first lines of example files
    text = re.sub(r"```.*?```", "", whole, flags=re.DOTALL)
    for named in re.findall(r"`(?:python )?([\w./-]+\.(?:py|sh|yaml))\b", text):
        there = any(f"/{path.relative_to(ROOT)}".endswith(f"/{named}") for path in SOURCES)
        assert there or named in (*examples, *OUTSIDE), named
    for named in re.findall(r"`(?:\w+\.py::)?(test_\w+)`", text):
        assert any(
            f"def {named}(" in p.read_text(encoding="utf-8") or p.stem == named
            for p in SOURCES
            if p.name.startswith("test_")
        ), named


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", read(name)):
        if not target.startswith("https://"):
            assert (TEXTS[name].parent / target).exists(), target


def test_the_index_lists_every_document() -> None:
    listed = set(re.findall(r"^\| \[(\w+\.md)\]", read("docs/README.md"), re.MULTILINE))
    assert listed == {path.name for path in DOCS.glob("*.md")} - {"README.md"}


def test_every_command_is_described() -> None:
    text = read("docs/commands.md")
    for name in COMMANDS:
        assert re.search(rf"^## .*`specfit {name}`", text, re.MULTILINE), name
    for target in re.findall(r"^([a-z-]+):.*## ", read("Makefile"), re.MULTILINE):
        assert target == "help" or f"`make {target}`" in text, target
    scripts = [p for p in (ROOT / "scripts").rglob("*.py") if "__main__" in p.read_text()]
    for script in scripts:
        path = str(script.relative_to(ROOT))
        behind = path.startswith("scripts/device/")  # check.sh runs it
        assert behind or f"`{path}`" in text, path


@pytest.mark.parametrize("name", [name for name in TEXTS if name != "README.md"])
def test_commands_are_real(name: str) -> None:
    for command in commands_in(read(name)):
        tested = "thrifty" in command  # by tests/docs/test_extend.py
        if not (tested or command.startswith(("export ", "python -m venv", ".venv/", "docker "))):
            check_command(command)


PROSE = {
    "plain words": r"\b([Ww]hoever|[Nn]obody|[Ss]omebody)\b",
    "leading zeros": r"(?<![\w.\]/`])\.\d{2,}",
    "documents of the repository": r"\b[Tt]he (design|issue)('s)?[^a-z]|\bdesign\.md",
}


@pytest.mark.parametrize("rule", PROSE)
def test_prose(rule: str) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    for path in map(Path, tracked or [str(p.relative_to(ROOT)) for p in DOCUMENTS]):
        for number, line in enumerate(read(str(path)).splitlines(), start=1):
            assert not re.search(PROSE[rule], line), f"{path}:{number}: {line}"
