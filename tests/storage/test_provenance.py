from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from specfit.storage import provenance


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    git(tmp_path, "init")
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-m", "first")
    return tmp_path


def test_commit_and_diff_in_a_clone(clone: Path) -> None:
    commit = provenance.commit_of(clone)
    assert commit is not None and len(commit) >= 40
    assert provenance.diff_hash_of(clone) is None
    (clone / "file").write_text("two")
    changed = provenance.diff_hash_of(clone)
    assert changed is not None and provenance.commit_of(clone) == commit
    (clone / "file").write_text("three")
    assert provenance.diff_hash_of(clone) not in (None, changed)


def test_an_installed_package_inside_a_clone_is_not_that_clone(clone: Path) -> None:
    (clone / "site-packages").mkdir()
    assert provenance.commit_of(clone / "site-packages") is None


def test_a_clone_without_a_commit_or_a_machine_without_git_is_null(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init")
    assert provenance.commit_of(tmp_path) is None and provenance.diff_hash_of(tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance.commit_of(tmp_path) is None
    assert provenance.collect().commit is None


def test_collect_is_plain_and_names_versions() -> None:
    found = provenance.collect(["specfit.run", "seed=1"]).as_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["argv"] == ["specfit.run", "seed=1"]
    assert found["versions"]["numpy"] and found["versions"]["python"]
    assert set(found["versions"]) == {"python", *provenance.PACKAGES}
