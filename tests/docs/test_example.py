"""docs/example.md runs as it stands, from another folder, and `specfit.api` is all it imports."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from specfit.api import run
from specfit.base.types import SpecfitError

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "docs" / name for name in ("example.md", "extend.md")]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_the_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in BLOCK.findall(DOCUMENTS[0].read_text(encoding="utf-8")):
        exec(compile(block, "docs/example.md", "exec"), names)
    table = names["table"]
    assert list(table.index) == ["ar_cache", "eagle3_cache", "specfit"]
    assert set(table["clock"]) == {"modelled"} and "tokens per second" in capsys.readouterr().out
    committed = table["committed per cycle"]
    assert committed["ar_cache"] == 1 < committed["specfit"] <= committed["eagle3_cache"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_documents_import_the_api_alone(document: Path) -> None:
    imported = re.findall(r"^(?:from|import) (specfit\S*)", document.read_text(), re.MULTILINE)
    assert set(imported) == {"specfit.api"}


def test_what_the_command_refuses_is_an_error_here() -> None:
    with pytest.raises(SpecfitError, match="did you mean cache_slots"):
        run("cache_slot=12")
    with pytest.raises(SpecfitError, match="limit is 0"):
        run("limit=0")
    with pytest.raises(SpecfitError, match="asks for sampling"):
        run("+temperature=1")
