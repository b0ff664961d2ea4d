"""A wheel, unpacked anywhere, has its config groups and weights, and runs from another folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SEEN = """
from specfit.base import paths
from specfit.decoding.spec import locate
from specfit.api import config
made = config("selector=specfit", "gpu=rtx4090")
print(paths.CONF, (paths.CONF / "gpu" / "rtx4090.yaml").is_file())
print(made.gpu.name, sorted(path.name for path in locate(made.model.path).iterdir())[0])
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing is written into the checkout."""
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("specfit", "conf"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*build, "--quiet", "--wheel-dir", str(out), str(copy)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(out / "site")
    return out / "site"


def seen_from(folder: Path, package: Path) -> list[str]:
    environment = os.environ | {"PYTHONPATH": str(package), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-c", SEEN]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_wheel_finds_its_groups_and_weights(unpacked: Path, tmp_path: Path) -> None:
    conf, model = seen_from(tmp_path, unpacked)
    assert conf == f"{unpacked / 'specfit' / 'conf'} True"
    assert model.startswith("rtx4090 ")


def test_a_bare_checkout_finds_those_at_its_top(tmp_path: Path) -> None:
    assert seen_from(tmp_path, ROOT)[0] == f"{ROOT / 'conf'} True"


def test_the_wheel_holds_what_git_tracks(unpacked: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "specfit", "conf"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    if not tracked:
        pytest.skip("this is no git checkout")
    there = [name for name in tracked if (ROOT / name).exists()]
    expected = {f"specfit/{name}" if name.startswith("conf/") else name for name in there}
    packed = {str(file.relative_to(unpacked)) for file in unpacked.rglob("*") if file.is_file()}
    assert not expected - packed
