"""The one command a GPU machine runs, rehearsed on a CPU: sections, verdicts, files, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.runnable import make_runnable

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "device" / "check.sh"


def check(out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(SCRIPT), "--out", str(out), "--wheels", str(out / "none"), *arguments],
        cwd="/",
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=1500,
    )


def simulate(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    pair, out = tmp_path / "pair", tmp_path / "out"
    make_runnable(pair)
    done = check(out, "--small", "--device", "cpu", "--pair", str(pair), *arguments)
    files = sorted(path.name for path in out.rglob("*") if path.is_file())
    assert files == ["device_check.log", "device_cpu.json"], done.stdout + done.stderr
    document: dict[str, Any] = json.loads((out / "device_cpu.json").read_text())
    document["exit"] = done.returncode
    assert document["small"] is True and document["versions"]["torch"]
    return document


def test_a_rehearsal_finds_equal_ids_and_judges_no_kernel(tmp_path: Path) -> None:
    document = simulate(tmp_path, "--only", "equality,kernels")
    sections = document["sections"]
    assert sections["equality"]["verdict"] == "passed", sections
    assert set(sections["equality"]["figures"].values()) == {"yes, 1 requests"}
    assert sections["kernels"]["verdict"] == "no verdict"
    assert document["exit"] == 0


@pytest.mark.slow
def test_every_section_runs_on_a_cpu(tmp_path: Path) -> None:
    """The probe may miss its goal on a busy machine; nothing may break."""
    document = simulate(tmp_path)
    sections = document["sections"]
    assert set(sections) == {"equality", "kernels", "probe", "low_precision", "dummy"}
    assert not any("error" in section for section in sections.values()), sections
    dummy = sections["dummy"]["figures"]
    assert dummy["specfit_48"]["committed_per_cycle"] > 1.0
    assert dummy["ar"]["hit_rate"] == 0.0 and dummy["ar_48"]["hit_rate"] > 0.0


def test_without_a_gpu_it_says_so_and_exits_2(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one")
    done = check(tmp_path)
    assert done.returncode == 2 and "--small --device cpu" in done.stdout
