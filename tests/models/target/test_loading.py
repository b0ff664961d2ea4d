"""Loading a folder: the right tensors, one sentence for what is wrong, memory for the store and
little more. Other MoE families run through the same engine as their own transformers class.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

from specfit.base.types import SpecfitError  # noqa: E402
from specfit.experts.cache import ExpertCache  # noqa: E402
from specfit.models.target.checkpoint import Checkpoint  # noqa: E402
from specfit.models.target.family import family_of, geometry_of  # noqa: E402
from specfit.models.target.loading import dense_bytes, load_model  # noqa: E402
from tests.fakes.tiny_model import CPU, Pair  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]


def load(folder: Path, dtype: Any = torch.float32, num_layers: int | None = None) -> Any:
    return load_model(Checkpoint(folder), dtype, CPU, num_layers)


@pytest.fixture
def copy(pair: Pair, tmp_path: Path) -> Path:
    """The pair's target, to be damaged."""
    return Path(shutil.copytree(pair.target_folder, tmp_path / "target"))


def shard_with(folder: Path, name: str) -> Path:
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    return folder / index["weight_map"][name]


def edit_shard(folder: Path, name: str, edit: Callable[[dict[str, Any]], Any]) -> None:
    path = shard_with(folder, name)
    tensors = safetensors.load_file(path)
    edit(tensors)
    safetensors.save_file(tensors, path)


def edit_config(folder: Path, **fields: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | fields))


# -- the right bytes -----------------------------------------------------------------------------


def test_every_block_is_what_the_file_says(pair: Pair) -> None:
    files = sorted(pair.target_folder.glob("*.safetensors"))
    assert len(files) > 1, "the pair has several shards"
    stored = {k: v for file in files for k, v in safetensors.load_file(file).items()}
    store = pair.loaded.store
    for layer in range(store.layers):
        for expert in range(store.experts):
            at = f"model.layers.{layer}.mlp.experts.{expert}"
            names = [f"{at}.{part}_proj.weight" for part in ("gate", "up", "down")]
            expected = torch.cat([stored[name].reshape(-1) for name in names])
            assert torch.equal(store.block(layer, expert), expected)
    for name, weight in pair.loaded.model.state_dict().items():
        assert torch.equal(weight, stored[name]), name


def test_another_dtype_is_converted_on_the_way(pair: Pair) -> None:
    loaded = load(pair.target_folder, torch.bfloat16)
    assert loaded.format.dtype == torch.bfloat16
    assert torch.equal(loaded.store.block(3, 5), pair.loaded.store.block(3, 5).bfloat16())
    assert all(weight.dtype == torch.bfloat16 for weight in loaded.model.parameters())


def test_fewer_layers_leave_the_rest_unread(pair: Pair) -> None:
    loaded = load(pair.target_folder, num_layers=2)
    assert loaded.store.layers == loaded.geometry.layers == len(loaded.model.model.layers) == 2


def test_dense_bytes_from_the_config_alone(pair: Pair) -> None:
    fields = json.loads((pair.target_folder / "config.json").read_text())
    held = sum(weight.numel() for weight in pair.loaded.model.parameters())
    assert dense_bytes(fields, torch.bfloat16) == 2 * held


# -- one sentence --------------------------------------------------------------------------------


def test_missing_shards_are_counted(copy: Path) -> None:
    shards = sorted(copy.glob("*.safetensors"))
    shards[0].unlink()
    expected = rf"has {len(shards) - 1} of {len(shards)} shards \({shards[0].name} is missing\)"
    with pytest.raises(SpecfitError, match=expected + "; run hf"):
        Checkpoint(copy, "run hf download")


def test_a_shard_cut_short_is_found_before_anything_is_read(copy: Path) -> None:
    last = sorted(copy.glob("*.safetensors"))[-1]
    last.write_bytes(last.read_bytes()[:-10])
    with pytest.raises(SpecfitError, match=rf"{last.name} is damaged .*fetch it again"):
        load(copy)


def test_a_tensor_of_another_shape_is_named(copy: Path) -> None:
    name = "model.layers.2.mlp.experts.7.up_proj.weight"
    edit_shard(copy, name, lambda t: t.update({name: torch.zeros(24, 32)}))
    with pytest.raises(
        SpecfitError, match=rf"{name} .*shape \[24, 32\], its config says \[24, 64\]"
    ):
        load(copy)


def test_a_tensor_that_the_shard_lacks_is_named(copy: Path) -> None:
    name = "model.layers.1.self_attn.q_norm.weight"
    edit_shard(copy, name, lambda t: t.pop(name))
    with pytest.raises(SpecfitError, match=f"lacks tensor {name}, which the index places there"):
        load(copy)


def test_a_tensor_of_a_format_we_do_not_run_is_named(copy: Path) -> None:
    name = "model.layers.1.mlp.experts.7.up_proj.weight"
    edit_shard(copy, name, lambda t: t.update({name: t[name].to(torch.float8_e4m3fn)}))
    with pytest.raises(SpecfitError, match=f"{name} .*stored as F8_E4M3.*it reads F32, F16, BF16"):
        load(copy)


def test_a_tensor_without_a_place_is_named(copy: Path) -> None:
    index = copy / "model.safetensors.index.json"
    stored = json.loads(index.read_text())
    name, file = "model.layers.0.self_attn.q_proj.bias", sorted(copy.glob("*.safetensors"))[0].name
    stored["weight_map"][name] = file
    index.write_text(json.dumps(stored))
    with pytest.raises(SpecfitError, match=f"{name}, for which its config .* has no place"):
        load(copy)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"quantization_config": {"quant_method": "hqq"}}, "quantised with hqq"),
        ({"model_type": "deepseek_v3"}, "'deepseek_v3' is not supported; known: gpt_oss, mixtral"),
        ({"sliding_window": 100, "use_sliding_window": True}, "sliding window of 100"),
        ({"mlp_only_layers": [1]}, "dense layers among"),
    ],
)
def test_what_a_config_asks_and_the_engine_does_not_do(
    copy: Path, fields: dict[str, Any], sentence: str
) -> None:
    edit_config(copy, **fields)
    with pytest.raises(SpecfitError, match=sentence):
        load(copy)


def test_a_pickle_is_not_opened(copy: Path) -> None:
    for path in (*copy.glob("*.safetensors"), copy / "model.safetensors.index.json"):
        path.unlink()
    (copy / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(SpecfitError, match=r"only pytorch_model\.bin, a pickle"):
        Checkpoint(copy)


# -- memory --------------------------------------------------------------------------------------

PEAK = """
import json, resource, sys, torch
from pathlib import Path
from specfit.models.target.checkpoint import Checkpoint
from specfit.models.target.loading import load_model
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
torch.set_num_threads(1)
checkpoint, before = Checkpoint(Path(sys.argv[1])), peak()
loaded = load_model(checkpoint, torch.bfloat16, torch.device("cpu"), None)
print(json.dumps([peak() - before, loaded.store.total_bytes]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux")
def test_peak_memory_is_the_store_and_little_more(tmp_path: Path) -> None:
    """The bound of the real model, store + 2 GB of 58, in proportion; a mapped file doubles it."""
    from scripts.device.make_checkpoint import Shapes, write_checkpoint

    shapes = Shapes(layers=2, hidden=512, experts=64, intermediate=768, vocabulary=1000)
    write_checkpoint(tmp_path, shapes, shard_bytes=60_000_000)
    assert len(list(tmp_path.glob("*.safetensors"))) > 3
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    grown, store_bytes = json.loads(done.stdout.splitlines()[-1])
    assert store_bytes > 300_000_000
    assert grown < 1.25 * store_bytes, f"{grown} bytes for a store of {store_bytes}"


# -- families ------------------------------------------------------------------------------------


def tiny_family(name: str, folder: Path) -> Any:
    """A random model of another family, saved by transformers."""
    from transformers import MixtralConfig, MixtralForCausalLM, OlmoeConfig, OlmoeForCausalLM

    torch.manual_seed(5)
    common = dict(
        vocab_size=100,
        hidden_size=64,
        intermediate_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_experts_per_tok=2,
        max_position_embeddings=128,
        initializer_range=0.3,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    if name == "mixtral":
        model = MixtralForCausalLM(MixtralConfig(num_local_experts=8, **common))
    else:
        normed = name == "olmoe-normed"
        config = OlmoeConfig(num_experts=8, norm_topk_prob=normed, clip_qkv=3.0, **common)
        model = OlmoeForCausalLM(config)
    model.save_pretrained(folder)
    return model.eval()


@pytest.mark.parametrize("name", ["mixtral", "olmoe", "olmoe-normed"])
def test_other_families_equal_their_own_class(name: str, tmp_path: Path) -> None:
    from specfit.base.types import DraftTree, Selection
    from specfit.experts.engine import ExpertEngine
    from specfit.models.target.offloaded import OffloadedTarget

    plain = tiny_family(name, tmp_path)
    loaded = load(tmp_path)
    engine = _engine(ExpertEngine, loaded)
    target = OffloadedTarget(loaded, engine, (0, 2), None, CPU)
    prompt = np.random.default_rng(3).integers(3, 100, 12)
    with torch.inference_mode():
        said = plain.generate(
            torch.as_tensor(prompt)[None], do_sample=False, max_new_tokens=8, eos_token_id=None
        )[0].tolist()
        states = plain(torch.as_tensor([said[:-1]]), output_hidden_states=True).hidden_states
    prefilled = target.prefill(prompt)
    token, features = prefilled.token, [prefilled.features]
    for position in range(12, 19):
        assert token == said[position]
        verified = target.verify(token, DraftTree.empty(), Selection(()))
        target.keep([0])
        token = int(verified.tokens[0])
        features.append(verified.features)
    expected = torch.cat([states[0][0], states[2][0]], dim=-1)
    torch.testing.assert_close(torch.cat(features), expected, atol=2e-4, rtol=2e-4)


def _engine(kind: Any, loaded: Any) -> Any:
    from specfit.experts.copies import CpuCopyEngine
    from specfit.experts.kernels.choice import choose_arithmetic

    shape = loaded.geometry
    cache = ExpertCache(shape.layers, shape.experts, 3, staging_blocks=3)
    arithmetic = choose_arithmetic("loop", loaded.activation, CPU, loaded.format)
    return kind(loaded.store, cache, CpuCopyEngine(2), arithmetic, CPU)


def test_names_of_a_mixtral() -> None:
    family = family_of({"model_type": "mixtral"})
    assert family.expert_parts(3, 5)[0] == "model.layers.3.block_sparse_moe.experts.5.w1.weight"
    assert family.expert_parts(3, 5)[1].endswith("w3.weight")
    stored = family.stored_name("model.layers.3.mlp.gate.weight")
    assert stored == "model.layers.3.block_sparse_moe.gate.weight"
    assert family.stored_name("model.norm.weight") == "model.norm.weight"


def test_both_spellings_of_the_expert_count() -> None:
    fields = {
        "num_hidden_layers": 2,
        "num_experts_per_tok": 2,
        "hidden_size": 8,
        "intermediate_size": 4,
        "vocab_size": 10,
        "max_position_embeddings": 64,
    }
    assert geometry_of(fields | {"num_experts": 8}) == geometry_of(
        fields | {"num_local_experts": 8}
    )
    with pytest.raises(SpecfitError, match="no integer num_experts"):
        geometry_of(fields)


@pytest.mark.slow
def test_two_layers_of_the_30b_shapes_run(tmp_path: Path) -> None:
    """hidden 2048, 128 experts of 768, top-8, in bfloat16; 2.5 GB of experts."""
    from scripts.device.make_checkpoint import Shapes, write_checkpoint
    from specfit.experts.engine import ExpertEngine
    from specfit.models.target.offloaded import OffloadedTarget

    write_checkpoint(tmp_path, Shapes(layers=2, vocabulary=4096))
    loaded = load(tmp_path, torch.bfloat16)
    assert loaded.store.block_bytes == 9_437_184
    engine = _engine(ExpertEngine, loaded)
    target = OffloadedTarget(loaded, engine, (0, 1), None, CPU)
    prompt = np.arange(5, 21)
    prefilled = target.prefill(prompt)
    from transformers import AutoModelForCausalLM

    plain = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.bfloat16).eval()
    with torch.inference_mode():
        states = plain(torch.as_tensor(prompt)[None], output_hidden_states=True).hidden_states
    expected = torch.cat([states[0][0], states[1][0]], dim=-1)
    torch.testing.assert_close(prefilled.features, expected, atol=2e-2, rtol=2e-2)
