"""Doctor says "ready" where the run is, and ends with 2 where the run would."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from specfit.base.types import SpecfitError
from specfit.hardware.memory import HostMemory
from tests.fakes.tiny_model import Command, Runnable, in_process

SMALL = ("limit=1", "max_new_tokens=4", "calibration.slots=4")


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process("doctor", monkeypatch, capsys)


def edit(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def ready(out: str) -> list[str]:
    (line,) = [line for line in out.splitlines() if line.startswith("ready: ")]
    return shlex.split(line.removeprefix("ready: python -m specfit.run "))


def test_the_ready_command_keeps_every_override_and_runs(
    doctor: Command, command: Command, runnable: Runnable, tmp_path: Path
) -> None:
    odd = f'results_dir="{tmp_path}/a=b (1)"'
    typed = [*runnable.overrides, *SMALL, "gpu.link_gbps=25", "selector.k=3", odd]
    ended = doctor(*typed)
    assert ended.code == 0, ended.out
    words = ready(ended.out)
    assert words[: len(typed)] == typed
    assert any(word.startswith("cache_slots=") for word in words)
    assert command(*words).code == 0
    assert (tmp_path / "a=b (1)" / "runs").is_dir()


def quantised(pair: Runnable) -> None:
    edit(pair.target / "config.json", quantization_config={"quant_method": "hqq"})


def fused(pair: Runnable) -> None:
    shard = sorted(pair.target.glob("*.safetensors"))[0]
    tensors = load_file(shard)
    name = "model.layers.0.mlp.experts.gate_up_proj"
    tensors[name] = next(iter(tensors.values())).clone()
    save_file(tensors, shard, metadata={"format": "pt"})
    index = pair.target / "model.safetensors.index.json"
    said = json.loads(index.read_text())
    said["weight_map"][name] = shard.name
    index.write_text(json.dumps(said))


def half_a_shard(pair: Runnable) -> None:
    shard = sorted(pair.target.glob("*.safetensors"))[-1]
    shard.write_bytes(shard.read_bytes()[:-64])


def no_head(pair: Runnable) -> None:
    (pair.drafter / "model.safetensors").unlink()


def head_of_another(pair: Runnable) -> None:
    path = pair.drafter / "model.safetensors"
    tensors = load_file(path)
    tensors["fc.weight"] = tensors["fc.weight"][:, :-1].contiguous()
    save_file(tensors, path, metadata={"format": "pt"})


def no_template(pair: Runnable) -> None:
    (pair.target / "chat_template.jinja").unlink()


@pytest.mark.parametrize(
    "damage", [quantised, fused, half_a_shard, no_head, head_of_another, no_template]
)
def test_what_the_run_refuses_is_not_ready(
    damage: Any, doctor: Command, command: Command, runnable: Runnable, tmp_path: Path
) -> None:
    pair = runnable.copied_to(tmp_path)
    damage(pair)
    typed = [*pair.overrides, *SMALL, "cache_slots=4", f"results_dir={tmp_path / 'results'}"]
    run, said = command(*typed), doctor(*typed)
    assert (run.code, said.code) == (2, 2)
    assert "ready:" in said.out and "\nready: " not in said.out
    sentence = run.err.strip().splitlines()[-1].removeprefix("specfit: ")
    assert sentence in said.out, "the doctor's sentence is the run's own"


def test_too_little_memory_is_the_loaders_decision(
    doctor: Command, runnable: Runnable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from specfit.experts import host_weights

    monkeypatch.setattr(host_weights, "host_memory", lambda: HostMemory(1000, 1000, None))
    with pytest.raises(SpecfitError, match="GB of host memory"):
        host_weights.refuse_without_memory(1 << 20)
    ended = doctor(*runnable.overrides, *SMALL, f"results_dir={tmp_path}")
    assert ended.code == 2 and "TOO LITTLE" in ended.out and "GB of host memory" in ended.out


def test_what_is_unknown_is_no_zero(doctor: Command, runnable: Runnable, tmp_path: Path) -> None:
    """A head that is not here and cannot be fetched."""
    where = ["drafter.path=", "drafter.repository=nobody/no-such-head", f"results_dir={tmp_path}"]
    ended = doctor(f"model.path={runnable.target}", *SMALL, "gpu.billed=self", *where)
    assert ended.code == 2
    (row,) = [line for line in ended.out.splitlines() if line.startswith("  draft head")]
    assert row.split()[-1] == "unknown" and "  at least" in ended.out
    assert "an unknown number of GB to fetch" in ended.out
    assert ended.err == "", "the hub's client says nothing of its retries"


def test_a_results_folder_that_cannot_be_written(doctor: Command, runnable: Runnable) -> None:
    ended = doctor(*runnable.overrides, *SMALL, "results_dir=/proc/none")
    assert ended.code == 2 and "cannot use /proc/none" in ended.out


def test_slots_in_ram_are_counted_and_refused_as_by_the_run(
    doctor: Command, runnable: Runnable, tmp_path: Path
) -> None:
    typed = [*runnable.overrides, *SMALL, "offload.tier=disk", f"offload.pack={tmp_path}"]
    typed += ["cache_slots=4", "offload.ram_slots=6", "device=cpu", f"results_dir={tmp_path}"]
    ended = doctor(*typed, "gpu=local")
    assert ended.code == 0, ended.out
    assert sum(line.startswith("  RAM slots") for line in ended.out.splitlines()) == 1
    refused = doctor(*typed)
    assert refused.code == 2
    assert refused.out.count("makes two links, from disk and from RAM") == 1
