"""The one command a GPU machine runs, rehearsed on a CPU: sections, verdicts, files, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from tests.fakes.tiny_model import make_runnable

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "device" / "check.sh"


WHEELS = ROOT / "scripts" / "device" / "wheels.sh"
# Import names of what specfit may use here and a usual GPU image does not have.
LACKING = {
    "datasets": "datasets",
    "evaluate": "evaluate",
    "hydra": "hydra-core",
    "hydra_plugins": "hydra-joblib-launcher",
    "nltk": "nltk",
    "omegaconf": "omegaconf",
    "ortools": "ortools",
    "pydantic": "pydantic",
    "rouge_score": "rouge-score",
    "submitit": "submitit",
    "wandb": "wandb",
}
HIDES = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
"""


def bare_image(folder: Path) -> dict[str, str]:
    """Surroundings of a Python that lacks what the image lacks and no wheel brings."""
    names = {name for name, package in LACKING.items() if package not in WHEELS.read_text()}
    assert {"evaluate", "datasets"} <= names
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(HIDES.format(names=sorted(names)))
    return {"PYTHONPATH": str(folder)}


def check(out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    out.mkdir(parents=True, exist_ok=True)
    bare = bare_image(out.parent / "bare")
    return subprocess.run(
        ["bash", str(SCRIPT), "--out", str(out), "--wheels", str(out / "none"), *arguments],
        cwd="/",
        env=os.environ | {"PYTHON": sys.executable} | bare,
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


def test_the_image_really_lacks_what_it_is_said_to_lack(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import evaluate"],
        env=os.environ | bare_image(tmp_path / "bare"),
        capture_output=True,
        text=True,
    )
    assert "No module named 'evaluate'" in done.stderr


def test_what_travels_stays_within_its_limit() -> None:
    """What git tracks or would, as wheels.sh counts it; the wheels are a few MB more."""
    if not (ROOT / ".git").exists():
        pytest.skip("only a clone knows what travels")
    names = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    ).stdout.split(b"\0")
    files = [ROOT / name.decode() for name in names if name]
    assert sum(file.stat().st_size for file in files if file.is_file()) < 55e6


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
    assert set(sections) == {
        *("equality", "kernels", "layers", "probe", "low_precision", "dummy", "probe_dummy")
    }
    assert not any("error" in section for section in sections.values()), sections
    dummy = sections["dummy"]["figures"]
    assert dummy["specfit_48"]["committed_per_cycle"] > 1.0
    assert dummy["ar"]["verify_gbps"] > 0.0 and dummy["ar_resident"]["hit_rate"] > 0.0
    assert dummy["ar"]["hit_rate"] == 0.0 and dummy["ar_48"]["hit_rate"] > 0.0


def test_fused_layers_and_graphs_are_compared_and_a_wrong_kernel_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the GPU does with kernels, done here with their stand-ins."""
    torch = pytest.importorskip("torch")
    from scripts.device import layers
    from tests.fakes.launches import CPU, as_on_a_gpu, resident_target
    from tests.fakes.layer_kernels import RecordedCapture, TorchLayerKernels

    class Wrong(TorchLayerKernels):
        def norm(self, hidden: Any, update: Any, weight: Any, eps: float, *out: Any) -> None:
            super().norm(hidden, update, weight, 1e-3, *out)

    monkeypatch.setattr(layers, "REPEATS", 1)
    loaded = as_on_a_gpu(3, torch.float32)
    runtime = SimpleNamespace(loaded=loaded, engine=resident_target(loaded).engine)
    for kernels, right in ((TorchLayerKernels(), True), (Wrong(), False)):
        found = layers.compare(runtime, kernels, RecordedCapture(), CPU)
        assert [(row["form"], row["rows"]) for row in found] == [
            (form, rows) for form in ("class", "fused", "graphs") for rows in (1, 8)
        ]
        assert all(row["error"] == 0.0 for row in found if row["form"] == "class")
        for row in found[2:]:
            assert (row["error"] <= layers.ERROR_GOAL) == right, row
            assert row["equal_routes"] == 1.0 or not right


def test_a_resident_cycle_is_judged_without_the_few_that_capture() -> None:
    from scripts.device.check import beside_ms

    rows = pd.DataFrame(
        {
            "cycle": [0, 1, 2, 3],
            "cycle_ns": [9e9, 300e6, 14e6, 16e6],
            "transfer_wait_ns": [0, 0, 1e6, 2e6],
        }
    )
    assert beside_ms(SimpleNamespace(cycles=rows)) == 14.0


def test_without_a_gpu_it_says_so_and_exits_2(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one")
    done = check(tmp_path)
    assert done.returncode == 2 and "--small --device cpu" in done.stdout
