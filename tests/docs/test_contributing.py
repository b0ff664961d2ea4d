"""CONTRIBUTING.md: a selector and a dataset added to a copy of the package by its recipes alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from specfit.storage.rows import load_run
from tests.fakes.tiny_model import Runnable

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PLACE = r"(?:, (among the imports|in \w+))?"
BLOCK = re.compile(rf"```(?:python|yaml)\n# ([\w./]+){PLACE}\n(.*?)```", re.DOTALL)
HEAVY = shutil.ignore_patterns("__pycache__", "weights")


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with the recipes' new files and lines, and no other change."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("specfit", "conf", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=HEAVY)
    (copy / "specfit" / "weights").symlink_to(ROOT / "specfit" / "weights")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for folder in {path.parent for path in (copy / "specfit").rglob("*.py")}:
        compiled = ROOT / folder.relative_to(copy) / "__pycache__"  # by numba, which takes a while
        compiled.mkdir(exist_ok=True)
        (folder / "__pycache__").symlink_to(compiled)
    for name, place, body in BLOCK.findall(TEXT):
        apply(copy / name, place, body)
    return copy


def apply(path: Path, place: str, body: str) -> None:
    """A new file; or lines before the first import of ours, or at the head of a dictionary."""
    if not place:
        assert not path.exists(), f"{path.name} is there already"
        path.write_text(body)
        return
    text = path.read_text(encoding="utf-8")
    head = "" if place == "among the imports" else rf"^{place.removeprefix('in ')}\b.*\{{\n"
    found = re.search(head or r"^(?=from specfit\.)", text, re.MULTILINE)
    assert found is not None, f"{path.name} has no {place}"
    path.write_text(text[: found.end()] + body + text[found.end() :])


def inside(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(copy), "HF_HUB_OFFLINE": "1"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)


def test_the_recipes_are_of_these_files() -> None:
    assert [name for name, _, _ in BLOCK.findall(TEXT)] == [
        "specfit/selection/baselines/first_level.py",
        *["specfit/selection/registry.py"] * 2,
        "conf/selector/first_level.yaml",
        "tests/selection/baselines/making.py",
        "conf/dataset/capitals.yaml",
    ]


def test_a_selector_and_a_dataset_by_the_recipes(changed: Path, runnable: Runnable) -> None:
    questions = changed / "capitals.jsonl"
    rows = [{"question": f"What is the capital of {n}?", "answer": n} for n in ("Peru", "Chad")]
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    same = [*runnable.overrides, "dataset=capitals", f"dataset.path={questions}", "cache_slots=4"]
    done = inside(changed, "specfit.run", "-m", "selector=ar_cache,first_level", *same)
    assert done.returncode == 0, done.stderr
    runs = [load_run(path.parent) for path in changed.glob("results/runs/*/manifest.json")]
    theirs, plain = sorted(runs, key=lambda run: run.info.selector == "ar_cache")
    assert theirs.info.dataset == "capitals" and list(theirs.requests["status"]) == ["ok", "ok"]
    assert theirs.cycles["drafted_levels"].max() == 1 < theirs.cycles["verified_nodes"].max() == 2
    ids = [[list(one) for one in run.requests["output_ids"]] for run in (theirs, plain)]
    assert ids[0] == ids[1], "greedy output is the target's own"


def test_the_new_rule_is_under_the_property_tests(changed: Path) -> None:
    chosen = "tests/selection/baselines/test_every_rule.py"
    done = inside(changed, "pytest", chosen, "-q", "-k", "first_level", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout
    assert re.search(r"\b2 passed", done.stdout)
