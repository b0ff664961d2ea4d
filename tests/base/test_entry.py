"""One sentence and exit code 2, whatever an entry point meets."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specfit.base.entry import INTERRUPTED, absent_module, needs_extras, reading, script
from specfit.base.types import SpecfitError

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(
    path for path in (ROOT / "scripts").rglob("*.py") if "__main__" in path.read_text()
)
DOORS = [path for path in (ROOT / "specfit").glob("*.py") if not path.stem.startswith("_")]


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (SpecfitError("no such\n  thing"), 2, "specfit: no such thing"),
        (FileNotFoundError(2, "No such file or directory", "/x/y"), 2, "cannot use /x/y (No such"),
        (OSError(28, "No space left on device"), 2, "No space left on device"),
        (ModuleNotFoundError("no", name="matplotlib.figure"), 2, "'specfit[figures]'"),
        (ModuleNotFoundError("no", name="torch"), 2, "pip install 'specfit[run]'"),
        (MemoryError("9 GiB"), 2, "out of memory (9 GiB)"),
        (KeyboardInterrupt(), INTERRUPTED, "interrupted"),
    ],
)
def test_a_script_ends_with_one_sentence(
    error: BaseException, code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def main() -> int:
        raise error

    assert script(main) == code
    said = capsys.readouterr().err
    assert said.startswith("specfit: ") and said.count("\n") == 1 and sentence in said


def test_a_defect_keeps_its_traceback() -> None:
    def main() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        script(main)
    assert absent_module(ModuleNotFoundError("no", name="specfit.nothing")) is None


def test_a_module_that_an_extra_has_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, needs_extras():
        import no_such_module_at_all  # type: ignore[import-not-found] # noqa: F401
    assert ended.value.code == 2
    assert "needs no_such_module_at_all" in capsys.readouterr().err


def test_a_file_of_another_form_is_named() -> None:
    with pytest.raises(SpecfitError, match=r"rows\.jsonl cannot be read as JSON lines"):
        with reading("rows.jsonl", "JSON lines"):
            json.loads("{")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_ends_through_it(path: Path) -> None:
    calls = {
        node.args[0].func.id
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "sys.exit"
        and isinstance(node.args[0], ast.Call)
        and isinstance(node.args[0].func, ast.Name)
    }
    assert "script" in calls


@pytest.mark.parametrize("door", sorted(p.stem for p in DOORS if p.stem not in ("api", "explain")))
def test_a_base_install_is_told_what_to_install(door: str, tmp_path: Path) -> None:
    """omegaconf is not there: a stub of the import system hides every library of the extras."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('omegaconf', 'hydra', 'torch', 'rich'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    ended = subprocess.run(
        [sys.executable, "-m", f"specfit.{door}"], capture_output=True, text=True, env=environment
    )
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.startswith("specfit: this needs ") and ended.stderr.count("\n") == 1
    assert "pip install 'specfit[run]'" in ended.stderr
