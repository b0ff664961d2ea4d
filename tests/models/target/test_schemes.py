"""Quantised checkpoints against transformers on the same weights, widened up front.

Each scheme's folder is written here from one random model; the reference is transformers' own class
with weights that an independent reading of the same files gives. Experts stay as stored in the
store, in slots and on the link, and ids equal the reference's whatever the residency.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

from specfit.base.types import DraftTree, Request, Selection, SpecfitError
from specfit.decoding.decoder import Decoder
from specfit.experts.cache import ExpertCache
from specfit.experts.copies import CopyEngine, CpuCopyEngine
from specfit.experts.disk_copies import DiskCopyEngine
from specfit.experts.disk_weights import DiskStore
from specfit.experts.engine import ExpertEngine
from specfit.experts.kernels.choice import choose_arithmetic
from specfit.experts.layouts.fp8 import Fp8Layout
from specfit.experts.layouts.int4 import Int4Layout
from specfit.hardware.clock import ModelledClock
from specfit.hardware.profile import Billing
from specfit.models.routes.atlas import AtlasRoutes
from specfit.models.routes.last_token import LastTokenRoutes
from specfit.models.routes.noisy import NoisyRoutes
from specfit.models.target import quantise
from specfit.models.target.checkpoint import Checkpoint
from specfit.models.target.loading import LoadedModel, load_model
from specfit.models.target.offloaded import OffloadedTarget
from specfit.models.target.quantise import Kind, quantise_checkpoint
from specfit.selection.cost import CostModel
from specfit.selection.registry import SelectorArgs, selector_spec
from tests.fakes.tiny_model import CPU, PROFILE, VOCABULARY, OracleDrafter, generate

HIDDEN, INNER = 64, 24
PROMPTS = [np.random.default_rng(7).integers(3, 100, size) for size in (9, 33)]
NEW_TOKENS = 12

FP8_TILES = quantise.fp8(tile=(16, 40), scales=torch.float32)
"""Tiles that the matrices do not fill."""

KINDS: dict[str, Kind] = {
    "fp8": FP8_TILES,
    "fp8-channel": quantise.compressed_fp8("channel"),
    "fp8-tensor": quantise.compressed_fp8("tensor"),
    "int4": quantise.compressed_int4(8),
    "gptq": quantise.gptq(8),
    "awq": quantise.awq(8),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    at = tmp_path_factory.mktemp("schemes")
    source = _random_model()
    source.save_pretrained(at / "source")

    def made(name: str) -> Path:
        if not (at / name).exists():
            quantise_checkpoint(at / "source", at / name, KINDS[name])
        return at / name

    return made


def _random_model() -> Any:
    torch.manual_seed(111)
    config = Qwen3MoeConfig(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        moe_intermediate_size=INNER,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        num_experts=8,
        num_experts_per_tok=3,
        norm_topk_prob=True,
        max_position_embeddings=128,
        initializer_range=0.3,
        eos_token_id=0,
    )
    return Qwen3MoeForCausalLM(config)


# -- an independent reading ----------------------------------------------------------------------


def tensors_of(folder: Path) -> dict[str, torch.Tensor]:
    return {
        k: v for file in sorted(folder.glob("*.safetensors")) for k, v in load_file(file).items()
    }


def nibbles(word: int) -> list[int]:
    return [(word & 0xFFFFFFFF) >> (4 * place) & 15 for place in range(8)]


def by_words(packed: torch.Tensor) -> np.ndarray:
    """int32 [A, B] -> [A, 8 B], the lowest nibble of a word first."""
    return np.array([[n for word in row for n in nibbles(word)] for row in packed.tolist()])


def scaled(weight: torch.Tensor, scale: torch.Tensor, tile: tuple[int, int]) -> torch.Tensor:
    wide = weight.float().clone()
    for row in range(0, wide.shape[0], tile[0]):
        for column in range(0, wide.shape[1], tile[1]):
            by = scale[row // tile[0], column // tile[1]].float()
            wide[row : row + tile[0], column : column + tile[1]] *= by
    return wide


def widened(name: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Plain names -> float32 matrices, by the formats' definitions."""
    plain: dict[str, torch.Tensor] = {}
    for key, tensor in tensors.items():
        base = key.rpartition(".")[0]
        if key.endswith(".weight_packed"):
            numbers = torch.as_tensor(by_words(tensor)).float() - 8
            scale = tensors[base + ".weight_scale"].float().repeat_interleave(8, 1)
            plain[base + ".weight"] = numbers * scale
        elif key.endswith(".qweight"):
            plain[base + ".weight"] = _of_packed(name, tensor, tensors, base)
        elif tensor.dtype == torch.float8_e4m3fn:
            rows, columns = tensor.shape
            suffix, tile = {
                "fp8": ("_inv", (16, 40)),
                "fp8-channel": ("", (1, columns)),
                "fp8-tensor": ("", (rows, columns)),
            }[name]
            scale = tensors[f"{key}_scale{suffix}"]
            plain[key] = scaled(tensor, scale.reshape(-1, 1) if suffix == "" else scale, tile)
        elif tensor.dtype == torch.float32 and "scale" not in key:
            plain[key] = tensor
    return plain


def _of_packed(
    name: str, qweight: torch.Tensor, tensors: dict[str, torch.Tensor], base: str
) -> torch.Tensor:
    scales = tensors[base + ".scales"].float().repeat_interleave(8, 0)
    if name == "gptq":
        numbers = by_words(qweight.t().contiguous()).T
        zeros = by_words(tensors[base + ".qzeros"]) + 1
    else:
        order = np.array([0, 4, 1, 5, 2, 6, 3, 7])
        at = np.arange(8 * qweight.shape[1])
        at = at // 8 * 8 + order[at % 8]
        numbers, zeros = (by_words(t)[:, at] for t in (qweight, tensors[base + ".qzeros"]))
    zeros = np.repeat(zeros, 8, axis=0)
    return (torch.as_tensor(numbers - zeros).float() * scales).t().contiguous()


def reference(folder: Path, weights: dict[str, torch.Tensor], at: Path) -> Any:
    """transformers' class in float32 with these weights, from a plain folder."""
    fields = json.loads((folder / "config.json").read_text())
    fields.pop("quantization_config", None)
    at.mkdir()
    (at / "config.json").write_text(json.dumps(fields))
    (at / "generation_config.json").write_bytes((folder / "generation_config.json").read_bytes())
    save_file(weights, at / "model.safetensors", metadata={"format": "pt"})
    return AutoModelForCausalLM.from_pretrained(at, dtype=torch.float32).eval()


# -- running -------------------------------------------------------------------------------------


def load(
    folder: Path, dtype: torch.dtype = torch.float32, packs: Path | None = None
) -> LoadedModel:
    return load_model(Checkpoint(folder), dtype, CPU, None, packs)


def target_of(
    loaded: LoadedModel, slots: int, kernel: str = "auto", taps: tuple[int, ...] = ()
) -> OffloadedTarget:
    shape = loaded.geometry
    cache = ExpertCache(shape.layers, shape.experts, slots, staging_blocks=3)
    arithmetic = choose_arithmetic(kernel, loaded.activation, CPU, loaded.format, loaded.lift)
    on_disk = isinstance(loaded.store, DiskStore)
    copies: CopyEngine = DiskCopyEngine(2) if on_disk else CpuCopyEngine(2)
    engine = ExpertEngine(loaded.store, cache, copies, arithmetic, CPU)
    return OffloadedTarget(loaded, engine, taps, None, CPU)


def greedy(target: OffloadedTarget, prompt: np.ndarray) -> list[int]:
    target.begin()
    said = [target.prefill(prompt).token]
    while len(said) < NEW_TOKENS and said[-1] != 0:
        verified = target.verify(said[-1], DraftTree.empty(), Selection(()))
        target.keep([0])
        said.append(int(verified.tokens[0]))
    return said


@pytest.mark.parametrize("name", KINDS)
def test_text_is_that_of_transformers_on_weights_widened_up_front(
    folder: Callable[[str], Path], name: str, tmp_path: Path
) -> None:
    weights = widened(name, tensors_of(folder(name)))
    plain = reference(folder(name), weights, tmp_path / "plain")
    loaded = load(folder(name))
    for key, weight in plain.state_dict().items():
        if "experts" not in key:
            torch.testing.assert_close(loaded.model.state_dict()[key], weight, rtol=0, atol=0)
    for index, prompt in enumerate(PROMPTS):
        expected = generate(plain, prompt, NEW_TOKENS)
        for slots, kernel in ((2, "auto"), (8, "loop")):
            assert greedy(target_of(loaded, slots, kernel), prompt) == expected, index


@pytest.mark.parametrize("name", KINDS)
def test_blocks_are_bytes_of_the_file_and_those_bytes_are_what_is_copied(
    folder: Callable[[str], Path], name: str, tmp_path: Path
) -> None:
    """Counted by hand: weights, then scales, then zeros; padded to 48 bytes."""
    count, groups = 3 * HIDDEN * INNER, 3 * HIDDEN * INNER // 8
    tiles = 2 * (2 * 2) + 4 * 1
    expected = {
        "fp8": count + 4 * tiles,
        "fp8-channel": count + 2 * (2 * INNER + HIDDEN),
        "fp8-tensor": count + 2 * 3,
        "int4": count // 2 + 2 * groups,
        "gptq": count // 2 + 2 * groups,
        "awq": count // 2 + 2 * groups + groups // 2,
    }[name]
    loaded = load(folder(name))
    assert 0 <= loaded.store.block_bytes - expected < 48 + 6 * 16
    target = target_of(loaded, 0)
    target.prefill(PROMPTS[0])
    copied = sum(int(plan.misses.size) for plan in target.engine._plans)
    assert target.engine.copies.link.moved_bytes == copied * loaded.store.block_bytes
    assert target.expert_bytes == loaded.store.block_bytes
    disk = load(folder(name), packs=tmp_path).store
    assert torch.equal(disk.block(1, 5), loaded.store.block(1, 5))


@pytest.mark.parametrize("name", KINDS)
def test_a_forward_is_bit_identical_to_that_of_a_plain_checkpoint_of_the_same_numbers(
    folder: Callable[[str], Path], name: str, tmp_path: Path
) -> None:
    weights = widened(name, tensors_of(folder(name)))
    reference(folder(name), weights, tmp_path / "plain")
    for dtype in (torch.float32, torch.bfloat16):
        stories = []
        for at in (folder(name), tmp_path / "plain"):
            target = target_of(load(at, dtype), 3)
            target.prefill(PROMPTS[1])
            assert target._kv._stored is not None
            stories.append(target._kv._stored[:, :, :, : target.length])
        assert torch.equal(*stories), dtype


# -- the matrix ------------------------------------------------------------------------------------

COST = CostModel(1e7 + 6e5 * np.arange(8), 4e4)
SYSTEMS = [("ar", (0,), "none"), ("ar_cache", (3, 8), "none"), ("eagle3", (0,), "none")]
SYSTEMS += [("eagle3_cache", (0, 3, 8), "none"), ("specfit", (0, 3, 8), "atlas")]
SYSTEMS += [("specfit", (3,), "noisy"), ("specfit", (3,), "last_token")]
MATRIX = [
    (name, system, slots, tier, routes)
    for name in KINDS
    for system, counts, routes in SYSTEMS
    for slots in counts
    for tier in ("host", "disk")
]
QUICK = [one for one in MATRIX if one[1:] == ("specfit", 3, "disk", "atlas")]
"""The others change nothing about a format that these do not: they are for a release."""


@pytest.fixture(scope="module")
def known(folder: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Of a kind, transformers' texts on weights that are widened up front."""
    texts: dict[str, list[list[int]]] = {}

    def of(name: str) -> list[list[int]]:
        if name not in texts:
            at = tmp_path_factory.mktemp("plain") / name
            plain = reference(folder(name), widened(name, tensors_of(folder(name))), at)
            texts[name] = [generate(plain, prompt, NEW_TOKENS + 8) for prompt in PROMPTS]
        return texts[name]

    return of


def matrix_decoder(
    loaded: LoadedModel, system: str, slots: int, routes: str, texts: list[list[int]]
) -> Decoder:
    target, experts = target_of(loaded, slots, taps=(0,)), loaded.geometry.experts
    selector = selector_spec(system).make(
        SelectorArgs(system, 7, system == "specfit", experts, COST)
    )
    scripts = {(*p.tolist(), *t): len(p) for p, t in zip(PROMPTS, texts, strict=True)}
    source: Any = None
    if routes != "none":
        atlas = AtlasRoutes(target)
        source = {"atlas": lambda: atlas, "last_token": LastTokenRoutes}.get(
            routes, lambda: NoisyRoutes(atlas, experts, accuracy=0.4, seed=0)
        )()
    billing = Billing.own(loaded.geometry.layers, loaded.store.block_bytes)
    drafter = OracleDrafter(scripts) if selector.drafts else None
    return Decoder(target, drafter, source, selector, ModelledClock(PROFILE, billing))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "system", "slots", "tier", "routes"),
    [pytest.param(*one, marks=() if one in QUICK else pytest.mark.slow) for one in MATRIX],
)
def test_ids_are_those_of_transformers_whatever_decodes_from_wherever(
    folder: Callable[[str], Path],
    known: Callable[[str], list[list[int]]],
    name: str,
    system: str,
    slots: int,
    tier: str,
    routes: str,
    tmp_path: Path,
) -> None:
    loaded = load(folder(name), packs=tmp_path if tier == "disk" else None)
    decoder = matrix_decoder(loaded, system, slots, routes, known(name))
    records = []
    for prompt, text in zip(PROMPTS, known(name), strict=True):
        cycles = list(decoder.decode(Request("r", prompt, NEW_TOKENS, frozenset({0}))))
        assert [token for cycle in cycles for token in cycle.tokens] == text[:NEW_TOKENS]
        records += [cycle.record for cycle in cycles]
    moved = sum(record.transferred_experts for record in records)
    assert moved > 0
    assert sum(r.transferred_bytes for r in records) == moved * loaded.store.block_bytes
    if system in ("eagle3", "eagle3_cache"):
        assert sum(record.accepted_tokens for record in records) > 2, "paths are accepted"


def test_groups_may_mix_in_one_file(folder: Callable[[str], Path], tmp_path: Path) -> None:
    """FP8 attention beside int4 experts."""
    eight, four = (tensors_of(folder(name)) for name in ("fp8-channel", "int4"))
    mixed = {k: v for k, v in eight.items() if ".experts." not in k}
    mixed |= {k: v for k, v in four.items() if ".experts." in k}
    made = edited(folder("int4"), tmp_path / "mixed", lambda t: (t.clear(), t.update(mixed)))
    fields = json.loads((made / "config.json").read_text())
    groups = [dict(KINDS[n].config)["config_groups"]["group_0"] for n in ("fp8-channel", "int4")]
    fields["quantization_config"]["config_groups"] = {"group_0": groups[0], "group_1": groups[1]}
    (made / "config.json").write_text(json.dumps(fields))
    loaded = load(made)
    assert torch.equal(loaded.store.block(1, 5), load(folder("int4")).store.block(1, 5))
    name = "model.layers.1.self_attn.o_proj.weight"
    theirs = load(folder("fp8-channel")).model.state_dict()[name]
    assert torch.equal(loaded.model.state_dict()[name], theirs)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_type_of_scales_is_that_of_the_file(
    folder: Callable[[str], Path], dtype: torch.dtype, tmp_path: Path
) -> None:
    """Published files differ in it; read as another type, the bytes would be other numbers."""

    def narrowed(tensors: dict[str, torch.Tensor]) -> None:
        for name in [key for key in tensors if key.endswith("_scale_inv")]:
            tensors[name] = tensors[name].to(dtype)

    loaded = load(edited(folder("fp8"), tmp_path / "narrow", narrowed))
    assert loaded.format.layout == Fp8Layout((16, 40), dtype)
    tensors = tensors_of(tmp_path / "narrow")
    name = "model.layers.1.mlp.experts.5.up_proj.weight"
    expected = scaled(tensors[name], tensors[name + "_scale_inv"], (16, 40))
    block = loaded.format.widen(loaded.store.block(1, 5))
    assert torch.equal(block[INNER * HIDDEN : 2 * INNER * HIDDEN].view(INNER, HIDDEN), expected)


def test_zeros_of_gptq_v2_are_stored_as_they_are(
    folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """And 8 in a classic file would be 9."""

    def as_they_are(tensors: dict[str, torch.Tensor]) -> None:
        for name in [key for key in tensors if key.endswith(".qzeros")]:
            tensors[name] = tensors[name] + 0x11111111

    made = edited(folder("gptq"), tmp_path / "second", as_they_are)
    with pytest.raises(SpecfitError, match=r"qzeros .*holds zeros other than 7"):
        load(made)
    fields = json.loads((made / "config.json").read_text())
    fields["quantization_config"]["checkpoint_format"] = "gptq_v2"
    (made / "config.json").write_text(json.dumps(fields))
    assert torch.equal(load(made).store.block(1, 5), load(folder("gptq")).store.block(1, 5))


def test_a_quantised_router_is_widened(folder: Callable[[str], Path], tmp_path: Path) -> None:
    name, layout = "model.layers.1.mlp.gate.weight", KINDS["fp8"].layout
    parts = layout.quantise(tensors_of(folder("fp8"))[name])
    both = dict(zip((name, name + "_scale_inv"), parts, strict=True))
    loaded = load(edited(folder("fp8"), tmp_path / "gate", lambda tensors: tensors.update(both)))
    assert torch.equal(loaded.model.state_dict()[name], layout.widen(parts, torch.float32))


# -- one sentence --------------------------------------------------------------------------------

EXPERT = "model.layers.1.mlp.experts.5.up_proj"
FIRST = "model.layers.0.mlp.experts.0.gate_proj"


def edited(folder: Path, to: Path, edit: Callable[[dict[str, torch.Tensor]], Any]) -> Path:
    """A copy in one shard, its tensors changed."""
    tensors = tensors_of(folder)
    edit(tensors)
    to.mkdir()
    for file in folder.glob("*.json"):
        if "index" not in file.name:
            (to / file.name).write_bytes(file.read_bytes())
    save_file({k: v.contiguous() for k, v in tensors.items()}, to / "model.safetensors")
    return to


def rename(old: str, new: str) -> Callable[[dict[str, torch.Tensor]], Any]:
    return lambda tensors: tensors.update({new: tensors.pop(old)})


def drop(name: str) -> Callable[[dict[str, torch.Tensor]], Any]:
    return lambda tensors: tensors.pop(name)


def put(name: str, value: torch.Tensor) -> Callable[[dict[str, torch.Tensor]], Any]:
    return lambda tensors: tensors.update({name: value})


WRONG = [
    ("fp8", drop(f"{EXPERT}.weight_scale_inv"), rf"lacks tensor {EXPERT}.weight_scale_inv"),
    ("fp8", drop(f"{FIRST}.weight_scale_inv"), rf"{FIRST}.weight .*has no scale .*\(fp8\)"),
    ("fp8", put(f"{EXPERT}.weight_scale_inv", torch.ones(3, 2)), r"\[3, 2\], its config says"),
    (
        "fp8",
        put(f"{EXPERT}.weight", torch.zeros(INNER, HIDDEN)),
        f"{EXPERT}.weight .* as F32.*it reads F8_E4M3 .*fp8",
    ),
    ("fp8", rename(f"{EXPERT}.weight_scale_inv", f"{EXPERT}.scale"), f"{EXPERT}.scale, for which"),
    ("fp8", put(f"{EXPERT}.input_scale", torch.ones(1)), "input_scale, for which .* no place"),
    ("fp8-channel", drop(f"{FIRST}.weight_scale"), f"has no scale {FIRST}.weight_scale"),
    ("fp8-channel", put(f"{FIRST}.weight_scale", torch.ones(5, 1)), r"no 8-bit group"),
    ("int4", drop(f"{EXPERT}.weight_packed"), f"lacks tensor {EXPERT}.weight_packed"),
    ("int4", drop(f"{FIRST}.weight_scale"), "has no scale"),
    ("int4", put(f"{EXPERT}.weight_shape", torch.tensor([24, 32])), r"weight_shape .*\[24, 32\]"),
    ("int4", put(f"{EXPERT}.weight_g_idx", torch.zeros(HIDDEN)), "weight_g_idx, for which"),
    ("gptq", put(f"{EXPERT}.g_idx", torch.arange(HIDDEN).int()), "g_idx .*reorders columns"),
    ("gptq", drop(f"{FIRST}.qzeros"), "has no .*qzeros"),
    ("gptq", lambda t: t[f"{EXPERT}.qzeros"].add_(1), "qzeros .*holds zeros other than 7"),
    ("awq", drop(f"{EXPERT}.qzeros"), f"lacks tensor {EXPERT}.qzeros"),
]


@pytest.mark.parametrize(("name", "edit", "sentence"), WRONG)
def test_what_is_wrong_is_one_sentence(
    folder: Callable[[str], Path],
    name: str,
    edit: Callable[[dict[str, torch.Tensor]], Any],
    sentence: str,
    tmp_path: Path,
) -> None:
    with pytest.raises(SpecfitError, match=sentence) as error:
        load(edited(folder(name), tmp_path / "wrong", edit))
    assert "\n" not in str(error.value)


def test_a_trivial_order_of_columns_is_read(folder: Callable[[str], Path], tmp_path: Path) -> None:
    order = torch.arange(HIDDEN).int() // 8
    made = edited(folder("gptq"), tmp_path / "ordered", put(f"{EXPERT}.g_idx", order))
    assert load(made).format.layout == Int4Layout(8, torch.float16)


CONFIGS = [
    ({"quant_method": "bitsandbytes"}, "quantised with bitsandbytes.*it runs fp8, compressed"),
    ("fp8", "quantised with fp8"),
    ({"quant_method": "fp8"}, "lacks weight_block_size"),
    ({**FP8_TILES.config, "activation_scheme": "static"}, "activation_scheme=.static"),
    ({**FP8_TILES.config, "scale_fmt": "ue8m0"}, "scale_fmt=.ue8m0"),
    ({**KINDS["gptq"].config, "bits": 3}, "bits=3.* it runs 4"),
    ({**KINDS["gptq"].config, "desc_act": True}, "desc_act=True"),
    ({**KINDS["gptq"].config, "sym": False}, "sym=False"),
    ({**KINDS["gptq"].config, "checkpoint_format": "marlin"}, "marlin"),
    ({**KINDS["awq"].config, "version": "gemv"}, "version=.*gemv"),
    ({**KINDS["awq"].config, "zero_point": False}, "zero_point"),
]


def _ct(**weights: Any) -> dict[str, Any]:
    config = json.loads(json.dumps(KINDS["int4"].config))
    config["config_groups"]["group_0"]["weights"] |= weights
    return config


CONFIGS += [
    (_ct(symmetric=False), "group_0 as int 4-bit by group, asymmetric"),
    (_ct(num_bits=8), "int 8-bit by group"),
    (_ct(actorder="group"), "reordered"),
    (_ct() | {"sparsity_config": {"format": "sparse-24"}}, "sparsity_config"),
    (_ct() | {"kv_cache_scheme": {"num_bits": 8}}, "kv_cache_scheme"),
]


@pytest.mark.parametrize(("config", "sentence"), CONFIGS)
def test_a_config_that_is_not_run_is_one_sentence(
    folder: Callable[[str], Path], config: Any, sentence: str, tmp_path: Path
) -> None:
    made = edited(folder("fp8"), tmp_path / "wrong", lambda _: None)
    fields = json.loads((made / "config.json").read_text())
    (made / "config.json").write_text(json.dumps(fields | {"quantization_config": config}))
    with pytest.raises(SpecfitError, match=sentence) as error:
        Checkpoint(made)
    assert "\n" not in str(error.value)


# -- libraries as oracles ------------------------------------------------------------------------


def test_transformers_widens_tiles_of_fp8_to_the_same_numbers() -> None:
    from types import SimpleNamespace

    from transformers.integrations.finegrained_fp8 import Fp8Dequantize

    torch.manual_seed(4)
    layout = quantise.fp8(tile=(16, 32)).layout
    weight, scale = layout.quantise(torch.randn(48, 96))
    theirs = Fp8Dequantize(SimpleNamespace())._dequantize_one(weight, scale, torch.float32)
    assert torch.equal(layout.widen((weight, scale), torch.float32), theirs)


def test_compressed_tensors_unpacks_int4_to_the_same_numbers() -> None:
    helpers = pytest.importorskip("compressed_tensors.compressors.pack_quantized.helpers")
    torch.manual_seed(4)
    layout = Int4Layout(32, torch.bfloat16)
    packed, scale = layout.quantise(torch.randn(24, 64))
    theirs = helpers.unpack_from_int32(packed, 4, torch.Size((24, 64)))
    numbers = theirs.float().view(24, 2, 32) * scale.float()[..., None]
    assert torch.equal(layout.widen((packed, scale), torch.float32), numbers.view(24, 64))


def test_rounding_loses_no_more_than_half_a_step() -> None:
    """So a converted checkpoint is its source, to the format's own precision."""
    torch.manual_seed(4)
    weight = torch.randn(32, 64)
    for kind, largest in (("fp8", 0.08), ("int4", 0.25), ("gptq", 0.25), ("awq", 0.25)):
        layout = KINDS[kind].layout
        off = (layout.widen(layout.quantise(weight), torch.float32) - weight).abs().max()
        assert 0 < off < largest * float(weight.abs().max()), kind
