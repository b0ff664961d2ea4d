"""Read-only HOME and code, as in a usual container: libraries get another folder, in time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from specfit.base.library_caches import homes, is_writable, unusable

NOWHERE = "/proc/none"


def test_only_what_cannot_be_written_moves(tmp_path: Path) -> None:
    assert unusable({"HOME": str(tmp_path)}) == []
    moved = unusable({"HOME": NOWHERE})
    assert "HF_MODULES_CACHE" in moved and "MPLCONFIGDIR" in moved
    assert "NUMBA_CACHE_DIR" not in moved, "the code's own folder can be written here"
    own = {"HOME": NOWHERE, "HF_HOME": str(tmp_path), "MPLCONFIGDIR": str(tmp_path)}
    assert not {"HF_MODULES_CACHE", "MPLCONFIGDIR"} & set(unusable(own))
    assert "HF_MODULES_CACHE" in unusable({"HOME": str(tmp_path), "HF_HOME": NOWHERE})


def test_numba_moves_where_the_code_is_read_only_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from specfit.base import library_caches

    monkeypatch.setattr(library_caches, "PACKAGE", Path(NOWHERE))
    assert "NUMBA_CACHE_DIR" in unusable({"HOME": NOWHERE})
    assert all(not is_writable(folder) for folder in homes({"HOME": NOWHERE})["NUMBA_CACHE_DIR"])


def test_a_process_and_its_children_use_them(tmp_path: Path) -> None:
    code = "import specfit, os; print(os.environ['HF_MODULES_CACHE'])"
    root = str(Path(__file__).resolve().parents[2])
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_HOME", "HF_MODULES"))}
    environment = kept | {"HOME": NOWHERE, "TMPDIR": str(tmp_path), "PYTHONPATH": root}
    environment.pop("XDG_CACHE_HOME", None)
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0 and ended.stderr.count("\n") == 1, ended.stderr
    folder = Path(ended.stdout.strip())
    assert folder.is_dir() and tmp_path in folder.parents and str(tmp_path) in ended.stderr
