"""Bad input: one sentence on stderr, exit code 2, no traceback, nothing written.

One test per kind of error, through the real entry point. What is wrong with one
request is a row instead, and the run goes on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from specfit.storage.rows import load_run
from tests.fakes.tiny_model import (
    RUN_EXPERTS,
    Command,
    JobResult,
    Runnable,
    edit_json,
    edit_tensors,
    shard_of,
)

EXPERT = "model.layers.1.mlp.experts.3.up_proj.weight"
DENSE = "model.layers.2.self_attn.q_proj.weight"


@pytest.fixture
def refused(command: Command, runnable: Runnable, tmp_path: Path):  # type: ignore[no-untyped-def]
    """Run with these overrides, expect a refusal, return its sentence."""

    def refuse(*overrides: str, pair: Runnable = runnable) -> str:
        results = tmp_path / "results"
        settings = (f"results_dir={results}", "limit=2", "cache_slots=4")
        ended = command(*pair.overrides, *settings, *overrides)
        assert ended.code == 2, ended.out
        assert "Traceback" not in ended.err + ended.out
        assert not results.exists(), sorted(results.rglob("*"))
        return ended.sentence

    return refuse


# -- config ----------------------------------------------------------------------------------------

CONFIG = {
    "selector=thrifty": "selector=thrifty is unknown; use one of ar, ar_cache,",
    "model=llama": "model=llama is unknown; use one of embedded",
    "dataset=mmlu": "dataset=mmlu is unknown; use one of cnn_dailymail, embedded_gsm8k",
    "gpu=h100": "gpu=h100 is unknown; use one of local, paper_main",
    "cache_slot=12": "unknown key cache_slot; did you mean cache_slots?",
    "selecter=ar": "unknown key selecter; did you mean selector?",
    "zebra=1": "unknown key zebra; --help lists every key",
    "model.layers=2": "unknown key model.layers; did you mean model.num_layers?",
    "+zebra=1": "unknown key zebra; a run has model, drafter,",
    "+gpu.link=3": "unknown key gpu.link; gpu has name, clock,",
    "ar": "'ar' is not key=value, as in cache_slots=12",
    "selector=ar,specfit": "selector=ar,specfit names several values; add -m to run them",
    "limit=many": "Error merging override limit=many: Value 'many' of type 'str' could not be",
    "limit=0": "limit is 0; it must be at least 1",
    "dataset.limit=0": "dataset.limit is 0; it must be at least 1",
    "max_new_tokens=0": "max_new_tokens is 0; it must be at least 1",
    "threads=0": "threads is 0; it must be at least 1",
    "model.num_layers=9": "model.num_layers is 9; the checkpoint has 4",
    "selector.k=-1": "selector.k is -1; it must be at least 0",
    "selector.name=foo": "selector.name is 'foo'; use one of ar, ar_cache, eagle3,",
    "routes.name=foo": "routes.name is 'foo'; use one of atlas, noisy",
    "routes.accuracy=1.5": "routes.accuracy is 1.5; it is a share between 0 and 1",
    "dataset.scorer=foo": "dataset.scorer is 'foo'; use one of gsm8k_exact_match,",
    "objective=speed": "objective is 'speed'; use one of ratio, lambda",
    "lambda_tokens_per_s=9": "lambda_tokens_per_s is read by objective=lambda alone; set both",
    "calibration.at=once": "calibration.at is 'once'; use one of primary, own",
    "cache_slots=17": f"cache_slots is 17, but a layer has {RUN_EXPERTS} experts; use all",
    "cache_slots=-1": "cache_slots is -1; it must be at least 0",
    "cache_slots=most": "cache_slots is 'most'; use a number of experts per layer, all or fit",
    "cache_slots=2.5": "cache_slots=2.5: Value '2.5' of type 'float' is incompatible with",
    "offload.ram_slots=-1": "offload.ram_slots is -1; it must be at least 0",
    "offload.ram_slots=4": "offload.ram_slots=4 keeps experts of a disk in RAM, and offload.tier=",
    "gpu.link_gbps=-1": "profile paper_main: link_gbps=-1.0 must be a link speed above 0 GB/s",
    "gpu.node_ms=-0.1": "profile paper_main: node_ms=-0.1 must be a time of 0 or more",
    "gpu.copies_in_flight=0": "copies_in_flight=0 must be a whole number from 1 to 8",
    "gpu.clock=sundial": "gpu.clock is 'sundial'; use one of auto, wall, modelled",
    "gpu.billed=llama": (
        "gpu.billed is 'llama'; use self or qwen3-30b-a3b, qwen3-30b-a3b-fp8, qwen3-30b-a3b-int4, "
        "gpt-oss-20b"
    ),
    "gpu.link_gbps=null": "gpu=paper_main has no link_gbps or fixed_ms, which the modelled clock",
    "device=tpu": "device is 'tpu'; use one of auto, cpu, cuda",
    "trace=nobody": "trace=nobody names no request of this run; its 2 are evaluation-0,",
    "+temperature=0.7": "+temperature=0.7 asks for sampling; specfit decodes greedily, as the",
    "model.top_p=0.9": "model.top_p=0.9 asks for sampling; specfit decodes greedily",
    "--temperature=0.7": "--temperature=0.7 asks for sampling; specfit decodes greedily",
    "--limit=3": "--limit is no option; values are set as limit=<value>",
}


@pytest.mark.parametrize("override", CONFIG)
def test_config(refused, override: str) -> None:  # type: ignore[no-untyped-def]
    assert CONFIG[override] in refused(override)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (
            "offload.ram_slots=17",
            f"is 17, but a layer has {RUN_EXPERTS} experts; use at most",
        ),
        ("offload.ram_slots=4", "makes two links, from disk and from RAM, and the modelled clock"),
    ],
)
def test_slots_in_ram(refused, setting: str, sentence: str) -> None:  # type: ignore[no-untyped-def]
    assert sentence in refused(setting, "offload.tier=disk")


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is there")
def test_cuda_without_one(refused) -> None:  # type: ignore[no-untyped-def]
    assert refused("device=cuda") == (
        "device=cuda, but no CUDA device or driver was found; use device=cpu"
    )


# -- checkpoints -----------------------------------------------------------------------------------


@pytest.fixture
def damaged(runnable: Runnable, tmp_path: Path) -> Runnable:
    return runnable.copied_to(tmp_path / "pair")


def test_a_layer_count_that_does_not_divide_the_billed_one(refused, damaged: Runnable) -> None:  # type: ignore[no-untyped-def]
    edit_json(damaged.target / "config.json", num_hidden_layers=5)
    assert refused("selector=ar", pair=damaged) == (
        "gpu.billed=qwen3-30b-a3b has 48 layers, not a whole multiple of this model's 5; "
        "use gpu.billed=self"
    )


def test_no_checkpoint_folder(refused, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    nowhere = tmp_path / "nowhere"
    assert refused(f"model.path={nowhere}") == (
        f"no checkpoint folder at {nowhere}; set model.path to one"
    )


def test_a_missing_shard(refused, damaged: Runnable) -> None:  # type: ignore[no-untyped-def]
    shards = sorted(damaged.target.glob("*.safetensors"))
    shards[1].unlink()
    said = refused("selector=ar", pair=damaged)
    assert f"has {len(shards) - 1} of {len(shards)} shards ({shards[1].name} is missing)" in said


def test_a_cut_shard(refused, damaged: Runnable) -> None:  # type: ignore[no-untyped-def]
    shard = shard_of(damaged.target, EXPERT)
    shard.write_bytes(shard.read_bytes()[:-100])
    said = refused("selector=ar", pair=damaged)
    assert f"{shard} is damaged (" in said and said.endswith("; fetch it again")


@pytest.mark.parametrize("name", [EXPERT, DENSE])
def test_a_tensor_of_another_shape(refused, damaged: Runnable, name: str) -> None:  # type: ignore[no-untyped-def]
    with edit_tensors(shard_of(damaged.target, name)) as tensors:
        shape = list(tensors[name].shape)
        tensors[name] = tensors[name][:-1]
    assert refused("selector=ar", pair=damaged) == (
        f"tensor {name} of {damaged.target} has shape {[shape[0] - 1, shape[1]]}, "
        f"its config says {shape}"
    )


@pytest.mark.parametrize("name", [EXPERT, DENSE])
def test_a_missing_tensor(refused, damaged: Runnable, name: str) -> None:  # type: ignore[no-untyped-def]
    path = damaged.target / "model.safetensors.index.json"
    index = json.loads(path.read_text())["weight_map"]
    del index[name]
    edit_json(path, weight_map=index)
    assert f"lacks tensor {name} of shape [" in refused("selector=ar", pair=damaged)


def test_a_tensor_the_index_promises_and_the_shard_lacks(refused, damaged: Runnable) -> None:  # type: ignore[no-untyped-def]
    with edit_tensors(shard_of(damaged.target, DENSE)) as tensors:
        del tensors[DENSE]
    assert f"lacks tensor {DENSE}, which the index places there" in refused(
        "selector=ar", pair=damaged
    )


def test_a_quantised_checkpoint(refused, damaged: Runnable) -> None:  # type: ignore[no-untyped-def]
    edit_json(damaged.target / "config.json", quantization_config={"quant_method": "hqq"})
    assert refused(pair=damaged) == (
        f"{damaged.target} is quantised with hqq, which this engine does not run; "
        "it runs fp8, compressed-tensors, gptq, awq, mxfp4 and checkpoints in bfloat16"
    )


def test_another_architecture(refused, damaged: Runnable) -> None:  # type: ignore[no-untyped-def]
    edit_json(damaged.target / "config.json", model_type="llama")
    said = refused(pair=damaged)
    assert said.startswith("model_type 'llama' is not supported; known: ") and "qwen3_moe" in said


@pytest.mark.parametrize("name", ["config.json", "generation_config.json"])
def test_broken_json_of_a_checkpoint(refused, damaged: Runnable, name: str) -> None:  # type: ignore[no-untyped-def]
    (damaged.target / name).write_text('{"vocab_size": ')
    assert f"{name} is not valid JSON (" in refused("selector=ar", pair=damaged)


def test_no_tokenizer(refused, damaged: Runnable) -> None:  # type: ignore[no-untyped-def]
    (damaged.target / "tokenizer.json").unlink()
    assert "has no tokenizer that can be read (" in refused("selector=ar", pair=damaged)


# -- draft heads -----------------------------------------------------------------------------------


def test_no_head(refused, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    nowhere = tmp_path / "nowhere"
    said = refused(f"drafter.path={nowhere}")
    assert said == f"no draft head at {nowhere}; set drafter.path to its folder"


def test_a_cut_head(refused, damaged: Runnable) -> None:  # type: ignore[no-untyped-def]
    file = damaged.drafter / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    assert "model.safetensors is damaged:" in refused("selector=eagle3_cache", pair=damaged)


def test_a_head_of_another_target(refused, damaged: Runnable) -> None:  # type: ignore[no-untyped-def]
    edit_json(damaged.drafter / "config.json", target_hidden_size=64)
    assert refused("selector=eagle3", pair=damaged) == (
        "The draft head reads target features of width 64; the target's hidden_size is 32."
    )


def test_a_head_for_more_layers_than_are_run(refused) -> None:  # type: ignore[no-untyped-def]
    assert refused("selector=eagle3", "model.num_layers=2") == (
        "The draft head reads the inputs of layers [0, 1, 3]; expected distinct ids from 0 to 1."
    )


def test_a_head_tensor_of_another_shape(refused, damaged: Runnable) -> None:  # type: ignore[no-untyped-def]
    with edit_tensors(damaged.drafter / "model.safetensors") as tensors:
        tensors["fc.weight"] = tensors["fc.weight"][:, :-1]
    said = refused("selector=eagle3", pair=damaged)
    assert "tensor fc.weight" in said and "expected [32, 96], found [32, 95]" in said


def test_a_head_whose_d2t_are_absolute_ids(refused, damaged: Runnable) -> None:  # type: ignore[no-untyped-def]
    with edit_tensors(damaged.drafter / "model.safetensors") as tensors:
        tensors["d2t"] = tensors["d2t"] + torch.arange(len(tensors["d2t"]))
    assert "tensor d2t [200] reaches target ids 64 to 462" in refused(
        "selector=specfit", pair=damaged
    )


def test_a_head_whose_d2t_repeats(refused, damaged: Runnable) -> None:  # type: ignore[no-untyped-def]
    with edit_tensors(damaged.drafter / "model.safetensors") as tensors:
        tensors["d2t"][7:] -= 1
    assert "is not an offset table" in refused("selector=eagle3", pair=damaged)


# -- datasets --------------------------------------------------------------------------------------


def rows(path: Path, *lines: object, end: str = "\n") -> str:
    """A JSON-lines file; strings are written as they are. Returns the override."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_bytes("".join(text + end for text in texts).encode())
    return f"dataset.path={path}"


def test_no_dataset_file(refused, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    nowhere = tmp_path / "nowhere.jsonl"
    said = refused("dataset=prompts", f"dataset.path={nowhere}")
    assert said == f"dataset.path={nowhere} does not exist"
    assert refused("dataset=prompts") == "dataset=prompts needs dataset.path=<a JSON-lines file>"
    said = refused("dataset=prompts", f"dataset.path={tmp_path}")
    assert said.startswith(f"dataset.path={tmp_path} cannot be read as UTF-8 text (")


DATASETS: dict[str, tuple[str, list[object], str]] = {
    "no field": (
        "gsm8k",
        [{"question": "?", "answer": "#### 1"}, {"question": "?", "label": 1}],
        "line 2 has no field 'answer'; it has label, question",
    ),
    "no prompt": ("prompts", [{"text": "hello"}], "line 1 has no field 'prompt'; it has text"),
    "broken": (
        "prompts",
        [{"prompt": "hello"}, '{"prompt": "hel'],
        "line 2 is not JSON (Unterminated string starting at)",
    ),
    "no object": ("prompts", ["[1, 2]"], "line 1 is not a JSON object"),
    "empty": ("prompts", ["", "  "], "has no rows; expected one JSON object per line"),
    "id twice": (
        "prompts",
        [{"id": "a", "prompt": "x"}, {"id": "a", "prompt": "y"}],
        "line 2 repeats the id 'a' of line 1; ids are distinct",
    ),
}


@pytest.mark.parametrize("case", DATASETS)
def test_dataset(refused, tmp_path: Path, case: str) -> None:  # type: ignore[no-untyped-def]
    name, lines, expected = DATASETS[case]
    path = tmp_path / "rows.jsonl"
    said = refused(f"dataset={name}", rows(path, *lines), "selector=ar")
    assert said == f"{path} {expected}"


def test_no_network(refused) -> None:  # type: ignore[no-untyped-def]
    said = refused("dataset=gsm8k", "selector=ar")
    assert said.startswith("dataset openai/gsm8k cannot be fetched (")
    assert said.endswith("); set dataset.path to a local JSON-lines file")


# -- calibration -----------------------------------------------------------------------------------


def test_no_calibration_file(refused, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    nowhere = tmp_path / "fit.json"
    said = refused("selector=specfit", f"calibration.path={nowhere}")
    assert said == f"calibration.path={nowhere} does not exist"


def test_calibration_of_another_run(refused, calibration: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    said = refused("calibration.slots=5", f"calibration.path={calibration}")
    assert said == (
        f"{calibration} was calibrated for another run: cache_slots differs; "
        "leave calibration.path out to make the right one"
    )
    said = refused("calibration.slots=4", f"calibration.path={calibration}", "selector.k=3")
    assert "was calibrated for another run: k differs" in said


def test_damaged_calibration(refused, calibration: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "fit.json"
    path.write_text(json.dumps({"identity": json.loads(calibration.read_text())["identity"]}))
    said = refused("calibration.slots=4", f"calibration.path={path}")
    assert said == f"{path} is damaged: it holds no fit; remove it to make a new one"


def test_calibration_rows_that_cannot_be_used(refused, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    nowhere = tmp_path / "nowhere.jsonl"
    said = refused(f"calibration.dataset_path={nowhere}")
    assert said == f"calibration.dataset_path={nowhere} does not exist"
    path = tmp_path / "rows.jsonl"
    rows(path, {"question": "One?"}, {"question": "Two?"})
    said = refused(f"calibration.dataset_path={path}")
    assert said == (
        "calibration needs 3 questions whose answers exceed 48 tokens; "
        "set calibration.dataset_path to a file with more of them"
    )


# -- one bad request, one bad job ------------------------------------------------------------------

ONE_BAD = {
    "empty": ({"prompt": "   "}, "the field 'prompt' is empty or not a text"),
    "no text": ({"prompt": 7}, "the field 'prompt' is empty or not a text"),
    "too long": ({"prompt": "x" * 1100}, "exceed the model's context of 1024"),
    "messages": ({"messages": []}, "messages must be a non-empty list of {role, content} texts"),
    "content": (
        {"messages": [{"role": "user", "content": None}]},
        "messages must be a non-empty list of {role, content} texts",
    ),
    "unicode": ('{"prompt": "\\ud800"}', "the field 'prompt' is not valid Unicode text"),
}


@pytest.fixture
def served(command: Command, runnable: Runnable, tmp_path: Path):  # type: ignore[no-untyped-def]
    """Run `ar` on these lines; returns how it ended and the statuses of its rows."""

    def serve(*lines: object, dataset: str = "prompts") -> tuple[JobResult, list[str]]:
        where = rows(tmp_path / "rows.jsonl", *lines)
        results = f"results_dir={tmp_path}"
        settings = ("selector=ar", f"dataset={dataset}", "max_new_tokens=4")
        ended = command(*runnable.overrides, results, where, *settings)
        (folder,) = (f for f in (tmp_path / "runs").iterdir() if f.is_dir())
        return ended, list(load_run(folder).requests["status"])

    return serve


@pytest.mark.parametrize("case", ONE_BAD)
def test_one_bad_request_is_a_row(served, case: str) -> None:  # type: ignore[no-untyped-def]
    line, expected = ONE_BAD[case]
    ended, statuses = served({"prompt": "good"}, line, {"prompt": "good as well"})
    assert ended.code == 0
    assert statuses[0] == statuses[2] == "ok" and expected in statuses[1]
    why = f"1 failed: {' '.join(statuses[1].split())}"
    assert "2 (1 failed: " in ended.out and why in " ".join(ended.out.split())
    assert why in ended.err and ended.err.count("\n") == 1


def test_a_reference_that_cannot_score_stops_no_decoding(served) -> None:  # type: ignore[no-untyped-def]
    good = {"question": "One and one?", "answer": "#### 2"}
    ended, statuses = served(good, good | {"answer": "two"}, good | {"answer": 2}, dataset="gsm8k")
    assert ended.code == 0
    assert statuses == ["ok", "ok", "ok"]
    assert "no score for 2 of 3 requests" in ended.out


def test_every_request_failed(served) -> None:  # type: ignore[no-untyped-def]
    ended, statuses = served({"prompt": ""}, {"prompt": "x" * 1100})
    assert ended.code == 3 and ended.err.count("\n") == 1
    assert f"2 failed, 1 of them: {statuses[0]}" in ended.err
    assert "ok" not in statuses


def test_failures_alike_are_counted(served) -> None:  # type: ignore[no-untyped-def]
    """Reasons that differ in a number are one; the first is told."""
    ended, statuses = served({"prompt": "x" * 1100}, {"prompt": "x" * 1200}, {"prompt": ""})
    assert f"3 failed, 2 of them: {statuses[0]}" in ended.err


def test_a_bad_job_of_a_sweep_stops_no_other(
    command: Command, runnable: Runnable, tmp_path: Path
) -> None:
    ended = command(
        *runnable.overrides,
        *("-m", f"results_dir={tmp_path}", "selector=ar_cache", "cache_slots=99,0,all"),
        *("limit=1", "max_new_tokens=4"),
    )
    assert ended.code == 2
    assert "cache_slots is 99" in ended.sentence
    finished = [load_run(f).info for f in (tmp_path / "runs").iterdir() if f.is_dir()]
    assert sorted(info.cache_slots for info in finished) == [0, RUN_EXPERTS]


def test_a_sweep_that_cannot_be_composed_runs_nothing(refused) -> None:  # type: ignore[no-untyped-def]
    assert "selector=foo is unknown" in refused("-m", "selector=ar,foo", "hydra.sweep.dir=/tmp")


def test_out_of_memory_is_a_sentence(refused, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    import specfit.decoding.live

    def too_much(*_: object) -> None:
        raise RuntimeError(
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
        )

    monkeypatch.setattr(specfit.decoding.live, "build_runtime", too_much)
    said = refused("selector=ar")
    assert said.startswith("out of memory (DefaultCPUAllocator: can't allocate memory: you tried")
    assert said.endswith(
        "lower cache_slots, prefill_chunk or model.num_layers; finished requests are kept"
    )


def test_a_results_folder_that_cannot_be_made(
    command: Command, runnable: Runnable, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    ended = command(*runnable.overrides, f"results_dir={tmp_path}/file", "selector=ar", "limit=1")
    assert ended.code == 2
    assert ended.sentence.startswith(f"cannot use {tmp_path}/file")


def test_a_config_is_composed_once_unless_hydras_mode_is_named(
    command: Command, runnable: Runnable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hydra itself composes it once more, to read a mode that `-m` decides here."""
    from hydra._internal.config_loader_impl import ConfigLoaderImpl

    own, loaded = ConfigLoaderImpl.load_configuration, []

    def counts(self: ConfigLoaderImpl, *arguments: object, **named: object) -> object:
        loaded.append(arguments)
        return own(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(ConfigLoaderImpl, "load_configuration", counts)
    said = (*runnable.overrides, f"results_dir={tmp_path}", "selector=ar_cache")
    assert command(*said, "cache_slots=99").code == 2 and len(loaded) == 1
    swept = command(*said, "hydra.mode=MULTIRUN", "cache_slots=98,99")
    assert swept.code == 2 and all(f"cache_slots is {n}" in swept.err for n in (98, 99))


# -- the process itself ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("selector=zebra", "selector=zebra is unknown"),
        ("model.path=/nowhere", "no checkpoint folder at /nowhere"),
    ],
)
def test_the_process_exits_2_with_one_line(tmp_path: Path, override: str, sentence: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "specfit.run", override, f"results_dir={tmp_path}/results"],
        capture_output=True,
        text=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        cwd=Path(__file__).resolve().parents[2],
    )
    ended = JobResult(done.returncode, done.stdout, done.stderr)
    assert ended.code == 2 and sentence in ended.sentence and ended.out == ""
    assert not (tmp_path / "results").exists()


# -- texts in Hydra's grammar ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        *("/x/a=b", "/x/(copy)", "/x/a,b", "[x]", "{x}", "/x/ü", "/x/a b", "it's", 'say "hi"'),
        *("both ' and \"", "back\\", 'a\\"b', "${x}", "/x/${y}/$z", "1e3", "null", "~/x", " lead"),
    ],
)
def test_any_text_has_an_override(text: str) -> None:
    from specfit.workflows.hydra_cli import as_text, compose

    assert compose([as_text("results_dir", text)]).results_dir == text


@pytest.mark.parametrize("name", ["a=b", "(copy)", "ü", "a,b", "it's"])
def test_a_path_in_hydras_grammar_is_told_its_quoted_form(
    name: str, command: Command, tmp_path: Path
) -> None:
    import shlex

    typed = f"results_dir={tmp_path}/{name}"
    ended = command(typed)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    form = ended.err.strip().partition(" write ")[2]
    (pasted,) = shlex.split(form)
    from specfit.workflows.hydra_cli import compose

    assert compose([pasted]).results_dir == f"{tmp_path}/{name}"


def test_slurm_without_its_programs(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    ended = command("-m", "hydra/launcher=submitit_slurm", "limit=1")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "needs sbatch and srun" in ended.err
