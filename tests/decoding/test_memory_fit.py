"""`cache_slots=fit`, the table runs obey, the doctor, and the 30B configs without a network."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hydra")

from specfit.base.config import RunConfig, from_hydra  # noqa: E402
from specfit.base.types import SpecfitError  # noqa: E402
from specfit.decoding import memory_fit, resolve  # noqa: E402
from specfit.decoding.memory_fit import (  # noqa: E402
    Sizing,
    settled_fit,
    sizing_of,
    workload_context,
)
from specfit.hardware.memory import HostMemory  # noqa: E402
from specfit.hardware.profile import Profile  # noqa: E402
from specfit.hardware.system_info import Surroundings  # noqa: E402
from specfit.models.target.attention import backend_name  # noqa: E402
from specfit.models.target.family import geometry_of  # noqa: E402
from specfit.workflows import doctor  # noqa: E402
from specfit.workflows.hydra_cli import compose  # noqa: E402
from tests.fakes.tiny_model import CPU, Pair  # noqa: E402

BIG = ["model=qwen3-30b-a3b", "drafter=redhat-eagle3", "dataset=gsm8k"]
QWEN = {
    "model_type": "qwen3_moe",
    "num_hidden_layers": 48,
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
    "intermediate_size": 6144,
    "vocab_size": 151936,
    "max_position_embeddings": 262144,
    "tie_word_embeddings": False,
}
REDHAT = {
    "speculators_model_type": "eagle3",
    "draft_vocab_size": 64000,
    "norm_before_residual": True,
    "transformer_layer_config": {
        "model_type": "llama",
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "vocab_size": 151936,
    },
}
CARD = Profile("card", 25.0, 70.0, memory_bytes=24564 * 2**20)


@cache
def config(*overrides: str) -> RunConfig:
    return from_hydra(compose([*BIG, *overrides]))


def sizing(clock: str, *overrides: str) -> Sizing:
    return sizing_of(config(*overrides), QWEN, REDHAT, clock, CPU, CARD)


def with_free(free: int, monkeypatch: pytest.MonkeyPatch) -> Sizing:
    monkeypatch.setattr(memory_fit, "device_free", lambda device: free)
    return sizing("wall")


# -- the table -----------------------------------------------------------------------------------


def test_parts_are_the_papers_numbers() -> None:
    """reference/paper.md, "Derived": 21.74, 1.81 + 1.24 + 0.03 and 1.04 e9 bytes at 48 slots."""
    rows = {name: size / 1e9 for name, size in sizing("wall").rows(48).items()}
    assert rows["slots"] == pytest.approx(21.74, abs=0.01)
    assert rows["dense weights"] == pytest.approx(3.08, abs=0.01)
    assert rows["draft head"] == pytest.approx(1.04, abs=0.01)
    assert rows["KV cache"] == pytest.approx(2 * 98304 * (1024 + 192 + 256) / 1e9)


def test_an_ar_run_counts_the_head_too() -> None:
    assert sizing("wall", "selector=ar_cache").rows(48) == sizing("wall").rows(48)


def test_the_context_is_the_workloads() -> None:
    assert workload_context(config(), 262144) == 1024 + 192 + 256
    assert workload_context(config("dataset=cnn_dailymail"), 262144) == 2048 + 256 + 256
    assert workload_context(config(), 500) == 500


def test_fewer_layers_need_less() -> None:
    assert sizing("wall", "model.num_layers=2").rows(48)["slots"] == 48 * 2 * 9437184


# -- fit -----------------------------------------------------------------------------------------


def test_fit_is_the_largest_count_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    table = with_free(24_600_000_000, monkeypatch)
    slots, sentence = table.fit(48)
    assert 40 <= slots < 48
    assert table.needed(slots) <= 24_600_000_000 < table.needed(slots + 1)
    assert (
        sentence
        == f"cache_slots=fit is {slots}: 48 needs {table.needed(48) / 1e9:.1f} GB, 24.6 free"
    )


def test_fit_on_a_large_card_is_every_expert(monkeypatch: pytest.MonkeyPatch) -> None:
    slots, sentence = with_free(140_000_000_000, monkeypatch).fit(48)
    assert slots == 128 and sentence.startswith("cache_slots=fit is 128: 128 needs")


def test_nothing_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        SpecfitError, match=r"0 slots per layer need .* 2\.0 free; free device memory"
    ):
        with_free(2_000_000_000, monkeypatch).fit(48)


def test_too_many_are_refused_with_the_count_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    table = with_free(24_600_000_000, monkeypatch)
    table.refuse_too_many(40)
    with pytest.raises(
        SpecfitError, match=r"48 slots per layer need 2\d\.\d GB.*use cache_slots=4\d"
    ):
        table.refuse_too_many(48)


def test_a_modelled_run_fits_its_profiles_card() -> None:
    slots, sentence = sizing("modelled", "gpu=rtx4090").fit(48)
    assert 43 <= slots < 48 and "in profile card" in sentence


def test_a_cpu_without_a_card_has_nothing_to_fit_into() -> None:
    with pytest.raises(SpecfitError, match=r"fit needs a GPU .* or a profile with memory_bytes"):
        sizing("wall").fit(48)


@pytest.fixture
def tiny(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Overrides of a run of the tiny pair on a card whose size a test can set."""
    return [
        f"model.path={pair.target_folder}",
        f"drafter.path={pair.drafter_folder}",
        "gpu.memory_bytes=20000000000",
        "gpu.billed=self",
        "cache_slots=fit",
    ]


def test_fit_is_settled_before_the_run_id(tiny: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    spec = resolve.resolve(from_hydra(compose(tiny)))
    assert spec.slots == 32 and spec.notes[0].startswith("cache_slots=fit is 32: 32 needs")
    number = from_hydra(compose([*tiny, "cache_slots=32"]))
    assert resolve.resolve(number).slots == spec.slots


def test_fit_without_any_bytes_is_one_sentence(tiny: list[str]) -> None:
    tiny[2] = "gpu.memory_bytes=null"
    with pytest.raises(SpecfitError, match="use a number"):
        resolve.resolve(from_hydra(compose(tiny)))


def test_a_run_on_a_gpu_prints_the_doctors_table(
    tiny: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    card = torch.device("cuda"), "Some Card"
    monkeypatch.setattr(resolve, "find_device", lambda asked: card)
    monkeypatch.setattr(resolve, "bus_id", lambda device: None)
    monkeypatch.setattr(memory_fit, "device_free", lambda device: 20_000_000_000)
    here = [*tiny[:2], "gpu=local", "cache_slots=4"]
    notes = list(resolve.resolve(from_hydra(compose(here))).notes)
    start = next(i for i, note in enumerate(notes) if note.startswith("device bytes at 4 slots"))
    table = notes[start : start + 8]
    assert [line.split("  ")[1] for line in table[1:]] == [
        *("slots", "staging", "dense weights", "draft head", "KV cache", "workspace"),
        "together",
    ]
    assert table[-1].endswith(" GB of 20.00 free")
    parts = sum(float(line.split()[-2]) for line in table[1:-1])
    assert parts == pytest.approx(float(table[-1].split()[1]), abs=0.03)


def test_a_run_on_a_gpu_says_when_it_is_on_another_numa_node(
    tiny: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    card = torch.device("cuda"), "Some Card"
    monkeypatch.setattr(resolve, "find_device", lambda asked: card)
    monkeypatch.setattr(resolve, "bus_id", lambda device: "0000:c1:00.0")
    monkeypatch.setattr(memory_fit, "device_free", lambda device: 20_000_000_000)
    here = [*tiny[:2], "gpu=local", "cache_slots=4"]
    for node, said in ((1, True), (0, False)):
        around = Surroundings(False, False, (0,), node)
        monkeypatch.setattr(resolve, "surroundings", lambda bus_id, around=around: around)
        notes = "\n".join(resolve.resolve(from_hydra(compose(here))).notes)
        assert ("the GPU is on NUMA node 1, this process on 0" in notes) == said
        assert ("numactl --cpunodebind=1 --membind=1" in notes) == said


def test_fit_is_settled_once_for_a_sweep_and_for_a_run_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes free differ from job to job; the count, and so the run's id, does not."""
    first, sentence = settled_fit(with_free(24_600_000_000, monkeypatch), 48, tmp_path)
    assert first < 48 and sentence.startswith(f"cache_slots=fit is {first}: 48 needs")
    less = with_free(24_599_999_000, monkeypatch)
    more = with_free(30_000_000_000, monkeypatch)
    assert more.fit(48)[0] != first
    for later in (more, less if less.largest() >= first else more):
        slots, said = settled_fit(later, 48, tmp_path)
        assert slots == first and "as settled in" in said
    assert settled_fit(more, 48, tmp_path / "other")[0] == more.fit(48)[0]
    with pytest.raises(SpecfitError, match=f"{first} slots per layer need"):
        settled_fit(with_free(10_000_000_000, monkeypatch), 48, tmp_path)


def test_another_model_or_workload_is_settled_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled_fit(with_free(24_600_000_000, monkeypatch), 48, tmp_path)
    longer = sizing("wall", "dataset=cnn_dailymail")
    assert settled_fit(longer, 48, tmp_path)[0] == longer.fit(48)[0]


def test_a_modelled_fit_reads_no_file(tmp_path: Path) -> None:
    table = sizing("modelled", "gpu=rtx4090")
    assert settled_fit(table, 48, tmp_path) == table.fit(48)
    assert list(tmp_path.iterdir()) == []


def on_disk(device: str, *overrides: str) -> Sizing:
    asked = config("offload.tier=disk", *overrides)
    return sizing_of(asked, QWEN, REDHAT, "wall", torch.device(device), CARD)


def test_slots_in_ram_take_a_cpus_own_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 of each of 48 layers, and 3 blocks through which experts pass: 29 GB before a slot."""
    there = HostMemory(None, 60_000_000_000, None)
    monkeypatch.setattr(memory_fit, "host_memory", lambda: there)
    plain, behind_ram = on_disk("cpu"), on_disk("cpu", "offload.ram_slots=64")
    size = (64 * 48 + 3) * 9437184
    assert behind_ram.ram_bytes == size and plain.ram_bytes == 0
    assert behind_ram.rows(8) == plain.rows(8) | {"RAM slots": size}
    assert behind_ram.store_bytes == plain.store_bytes == 0
    most = plain.largest()
    assert behind_ram.largest() == (most * 48 * 9437184 + _over(plain) - size) // (48 * 9437184)
    assert "  RAM slots" in "".join(behind_ram.lines(8))
    with pytest.raises(SpecfitError, match=r"use cache_slots=\d+ or fit"):
        behind_ram.refuse_too_many(most)


def _over(table: Sizing) -> int:
    """Bytes that the largest count leaves."""
    assert table.free is not None
    return table.free - table.needed(table.largest())


def test_what_a_gpu_gets_from_disk_comes_through_host_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory_fit, "device_free", lambda device: 24_600_000_000)
    for ram_slots in (0, 64):
        table = on_disk("cuda", f"offload.ram_slots={ram_slots}")
        assert table.store_bytes == (ram_slots * 48 + 3) * 9437184, "of host memory, page-locked"
        assert table.ram_bytes == 0 and "RAM slots" not in table.rows(8), "not of the device's"
        assert table.pack_bytes == 128 * 48 * 9437184
        assert table.fit(48)[0] == with_free(24_600_000_000, monkeypatch).fit(48)[0]


def test_a_fit_beside_other_slots_in_ram_is_settled_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = HostMemory(None, 60_000_000_000, None)
    monkeypatch.setattr(memory_fit, "host_memory", lambda: there)
    first, _ = settled_fit(on_disk("cpu"), 48, tmp_path)
    second, _ = settled_fit(on_disk("cpu", "offload.ram_slots=64"), 48, tmp_path)
    assert second == on_disk("cpu", "offload.ram_slots=64").fit(48)[0] < first


def test_the_heads_working_memory_is_counted_on_a_device_alone() -> None:
    """2,304 columns of the 30B's head: 0.2 GB counted, where the unfused path took a gigabyte."""
    with_head = sizing_of(config(), QWEN, REDHAT, "wall", CPU, CARD).needs.workspace_bytes
    without = sizing_of(config(), QWEN, None, "wall", CPU, CARD).needs.workspace_bytes
    assert 0.05e9 < with_head - without < 0.4e9
    modelled = [sizing_of(config(), QWEN, h, "modelled", CPU, CARD) for h in (REDHAT, None)]
    assert modelled[0].needs.workspace_bytes == modelled[1].needs.workspace_bytes


def test_cudnn_attention_is_off_before_anything_runs_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.backends.cuda.enable_cudnn_sdp(True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Some Card")
    assert resolve.find_device("auto")[0].type == "cuda"
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert backend_name() == "flash without a mask, memory-efficient with one"


def test_a_manifest_of_a_gpu_names_the_attention_backend(
    tiny: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    card = torch.device("cuda"), "Some Card"
    monkeypatch.setattr(resolve, "find_device", lambda asked: card)
    monkeypatch.setattr(resolve, "bus_id", lambda device: None)
    monkeypatch.setattr(memory_fit, "device_free", lambda device: 20_000_000_000)
    spec = resolve.resolve(from_hydra(compose([*tiny[:2], "gpu=local", "cache_slots=4"])))
    assert "memory-efficient" in spec.machine_facts()["attention"]
    assert any(note.startswith("attention: ") for note in spec.notes)


def test_uncached_systems_ignore_fit(tiny: list[str]) -> None:
    spec = resolve.resolve(from_hydra(compose([*tiny, "selector=ar"])))
    assert spec.slots == 0


# -- the 30B configs -----------------------------------------------------------------------------


def test_the_30b_runs_on_this_machines_clock_and_a_gpu_wins() -> None:
    assert config().gpu.name == "local" and config().gpu.clock == "wall"
    assert config("gpu=rtx4090").gpu.name == "rtx4090"
    assert config().model.dtype == "bfloat16" and config().model.calibration_dataset == "gsm8k"
    assert config().model.revision and config().drafter.revision


def test_the_30b_without_a_network_is_one_sentence() -> None:
    with pytest.raises(SpecfitError, match=r"not in the hub's cache .* or set model\.path=<its"):
        resolve.resolve(config())


def test_a_head_without_a_network_is_one_sentence(pair: Pair) -> None:
    spec = resolve.resolve(config(f"model.path={pair.target_folder}", "cache_slots=4"))
    with pytest.raises(SpecfitError, match=r"RedHatAI/.* or set drafter\.path=<its folder>"):
        _ = spec.drafter_digest


def test_a_model_without_files_is_one_sentence() -> None:
    with pytest.raises(SpecfitError, match=r"names no files; set model\.path"):
        resolve.resolve(config("model.repository=null"))


# -- the doctor ----------------------------------------------------------------------------------


def report(*overrides: str) -> str:
    """The lines, then what is not ready."""
    lines, told = doctor.diagnose(from_hydra(compose(list(overrides))), overrides), []
    while True:
        try:
            told.append(next(lines))
        except StopIteration as end:
            return "\n".join([*told, *end.value])


def test_the_doctor_of_the_30b_without_network_and_gpu() -> None:
    text = report(*BIG)
    assert "not in the hub's cache" in text and "experts 58.0 GB" in text
    assert "largest slot count that fits: unknown" in text
    assert "ready: " not in text and "run `hf download Qwen/" in text.splitlines()[-3]
    assert text.splitlines()[-1].startswith("the experts need 58.0 GB of host memory, 59.1")


def test_the_doctor_on_a_modelled_card_says_slots_hours_and_command() -> None:
    text = report("gpu=rtx4090", "dataset=embedded_gsm8k")
    assert "48 needs 26." in text and "an estimate (modelled clock)" in text
    assert "all five" in text
    slots = text.split("largest slot count that fits: ")[1].split(";")[0]
    assert text.endswith(f"gpu=rtx4090 dataset=embedded_gsm8k selector=specfit cache_slots={slots}")


def test_the_doctor_reads_a_folder(pair: Pair) -> None:
    text = report(f"model.path={pair.target_folder}", f"drafter.path={pair.drafter_folder}")
    assert "host memory: experts 0.0 GB" in text and "to fetch" not in text


def test_the_doctor_before_a_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def metadata(repository: Any, names: list[str]) -> dict[str, Any]:
        asked.extend(names)
        fields = QWEN if repository.key == "model" else REDHAT
        index = {"metadata": {"total_size": 61_000_000_000}, "weight_map": {}}
        return {name: fields if name == "config.json" else index for name in names}

    monkeypatch.setattr("specfit.models.target.fetch.metadata", metadata)
    monkeypatch.setattr("specfit.models.target.fetch.to_fetch", lambda _: 61_000_000_000)
    text = report(*BIG)
    assert "is not fetched yet" in text and "GB to fetch" in text
    assert "draft head        1.04 GB" in text
    assert set(asked) == {"config.json"} and "122.0 GB to fetch" in text
    for row in (r"bf16 +58\.0 +64 GB", r"fp8 +29\.0 +32 GB", r"int4 +14\.9 +24 GB"):
        assert re.search(row, text), "every format has its row"


def test_the_doctor_refuses_a_quantised_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def metadata(repository: Any, names: list[str]) -> dict[str, Any]:
        return dict.fromkeys(names, QWEN | {"quantization_config": {"quant_method": "hqq"}})

    monkeypatch.setattr("specfit.models.target.fetch.metadata", metadata)
    monkeypatch.setattr("specfit.models.target.fetch.to_fetch", lambda _: 1)
    text = report(*BIG)
    assert "quantised with hqq" in text and "ready: " not in text


def test_published_bytes_are_those_of_the_formats() -> None:
    """Two statements of a quantised expert: the shapes' and the layouts'."""
    from specfit.base.published import PUBLISHED
    from specfit.models.target.dummy import RandomCheckpoint
    from specfit.workflows.doctor_formats import expert_bytes

    for name, form in (("", "bf16"), ("-fp8", "fp8"), ("-int4", "int4")):
        shape = PUBLISHED[f"qwen3-30b-a3b{name}"]
        assert shape.expert_bytes() == expert_bytes(form, shape.hidden, shape.intermediate)
    dummy = RandomCheckpoint(Path(resolve.locate("package:weights/gpt-oss-20b-dummy")), {})
    own, shape = geometry_of(dummy.config), PUBLISHED["gpt-oss-20b"]
    assert shape.expert_bytes() == dummy.expert_format(own, torch.bfloat16).block_bytes
    sizes = own.layers, own.hidden, own.experts, own.top_k, own.intermediate, own.vocabulary
    assert sizes == (
        shape.layers, shape.hidden, shape.experts, shape.top_k, shape.intermediate, shape.vocabulary
    )  # fmt: skip


def test_the_dummys_config_is_the_published_one() -> None:
    """Two statements of the 30B's shapes agree: ours here and the dummy's."""
    stored = Path(resolve.locate("package:weights/qwen3-30b-a3b-dummy")) / "config.json"
    if not stored.exists():
        pytest.skip("the dummy model has no config.json here")
    fields = json.loads(stored.read_text())
    for name in ("num_hidden_layers", "hidden_size", "num_experts", "moe_intermediate_size"):
        assert fields[name] == QWEN[name]
