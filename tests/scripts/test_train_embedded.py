"""The training script end to end, a few steps: slow, its files are what the loader reads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = REPOSITORY / "scripts" / "train" / "embedded_pair.py"


@pytest.mark.slow
def test_smoke_run_writes_a_loadable_pair(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    from specfit.models.drafter.checkpoint import load_head

    options = ["--smoke", "--work", str(tmp_path / "work"), "--out", str(tmp_path / "pair")]
    done = subprocess.run([sys.executable, str(SCRIPT), *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "No --gsm8k-train file" in done.stdout
    target, drafter = tmp_path / "pair" / "target", tmp_path / "pair" / "drafter"
    assert len(list(target.glob("model-*.safetensors"))) == 2
    model = transformers.AutoModelForCausalLM.from_pretrained(target)
    assert model.config.num_experts == 128 and len(model.generation_config.eos_token_id) == 2
    assert load_head(drafter, model.config).config.norm_before_residual
    tokenizer = transformers.AutoTokenizer.from_pretrained(target)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "How many?"}], add_generation_prompt=True, tokenize=False
    )
    assert prompt == "<|im_start|>user\nHow many?<|im_end|>\n<|im_start|>assistant\n"
    for folder in (target, drafter):
        spec = json.loads((folder / "provenance.json").read_text())
        assert spec["seed"] == 1 and spec["gsm8k_train_sha256"] is None
        for file in ("provenance.json", "README.md", "statistics.json", "curve.csv"):
            assert str(tmp_path) not in (folder / file).read_text()
