"""The training script end to end on one prompt of each text: slow, its files are what runs read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "train" / "route_predictor.py"


@pytest.mark.slow
def test_smoke_run_writes_files_that_runs_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from specfit.base.config import from_hydra
    from specfit.decoding.resolve import resolve
    from specfit.models.routes.predictor import load_predictor
    from specfit.models.routes.token_table import load_table
    from specfit.workflows.hydra_cli import compose

    out = tmp_path / "out"
    options = ["--train", "1", "1", "--development", "1", "1", "--passes", "1", "--batch", "64"]
    places = ["--results", str(tmp_path / "results"), "--out", str(out)]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *options, "--width", "32", *places],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    spec = resolve(from_hydra(compose(["routes=learned", f"routes.path={out}"])))
    pair = {"target": spec.target_digest, "drafter": spec.drafter_digest}
    predictor = load_predictor(out / "learned.safetensors", pair, torch.device("cpu"))
    assert predictor.shape.width == 32 and predictor.shape.depths == 6
    assert load_table(out / "token_table.safetensors", spec.target_digest).shape == (2048, 8, 8)
    stored = json.loads((out / "provenance.json").read_text())
    assert stored["seed"] == 1 and stored["pair"] == pair
    assert [text["rows"][0] for text in stored["train"]] == ["train-0", "train-0"]
    assert [text["rows"][0] for text in stored["development"]] == ["development-0"] * 2
    for file in ("provenance.json", "README.md", "statistics.json", "curve.csv"):
        assert str(tmp_path) not in (out / file).read_text()
