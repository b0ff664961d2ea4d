"""A wheel and an editable install find their config groups and weights from another folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
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


def copied(folder: Path) -> Path:
    """What a build reads, so that nothing is written into the checkout."""
    for name in ("specfit", "conf"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy, out = copied(tmp_path_factory.mktemp("source")), tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*build, "--quiet", "--wheel-dir", str(out), str(copy)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(out / "site")
    return out / "site"


def seen_from(folder: Path, package: Path, python: str = sys.executable) -> list[str]:
    environment = os.environ | {"PYTHONPATH": str(package), "PYTHONSAFEPATH": "1"}
    command = [python, "-c", SEEN]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_wheel_finds_its_groups_and_weights(unpacked: Path, tmp_path: Path) -> None:
    conf, model = seen_from(tmp_path, unpacked)
    assert conf == f"{unpacked / 'specfit' / 'conf'} True"
    assert model.startswith("rtx4090 ")


def test_a_bare_checkout_finds_those_at_its_top(tmp_path: Path) -> None:
    assert seen_from(tmp_path, ROOT)[0] == f"{ROOT / 'conf'} True"


@pytest.mark.slow
def test_an_editable_install_finds_those_of_its_source(tmp_path: Path) -> None:
    """In an environment that borrows this one's libraries; a change is seen at once."""
    source, home = tmp_path / "source", tmp_path / "env"
    source.mkdir()
    copied(source)
    venv.create(home)
    python = str(home / "bin" / "python")
    (site,) = home.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib"))  # after its own packages
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    install += ["--no-build-isolation", "--editable", str(source)]
    done = subprocess.run(install, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    nowhere = tmp_path / "nowhere"
    assert seen_from(tmp_path, nowhere, python)[0] == f"{source / 'conf'} True"
    (source / "conf" / "gpu" / "rtx4090.yaml").rename(source / "conf" / "gpu" / "other.yaml")
    shows = (
        "from specfit.base import paths; print(*sorted(p.name for p in paths.CONF.glob('gpu/*')))"
    )
    environment = os.environ | {"PYTHONPATH": str(nowhere), "PYTHONSAFEPATH": "1"}
    seen = subprocess.run(
        [python, "-c", shows], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert "other.yaml" in seen.stdout and "rtx4090" not in seen.stdout, seen.stderr


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
