"""Two tiny random pairs in the real formats, and the command line in this process.

`pair` is for exact tests of the parts, beside transformers' own model: every default a loader might
wrongly assume is another value there (heads x head_dim != hidden, fewer key/value heads, untied
embeddings, two stop ids, two shards, a head of reduced vocabulary with its own RoPE base), and its
weights are wide, so that experts matter and greedy text does not settle at once. `runnable` is for
whole runs through an entry point: a byte-level tokenizer with a chat template, and 4 layers, a
divisor of the billed model's 48. A plugin of `conftest.py`; what is slow to import is imported on
use.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from specfit.base.types import PROBABILITY_ONE, ROOT, DraftTree, Request
from specfit.hardware.profile import Billing, Profile

if TYPE_CHECKING:
    import torch

    from specfit.hardware.clock import ModelledClock
    from specfit.models.drafter.eagle import EagleDrafter
    from specfit.models.drafter.head import EagleHead
    from specfit.models.target.loading import LoadedModel
    from specfit.models.target.offloaded import OffloadedTarget

LAYERS, EXPERTS, TOP_K, VOCABULARY, DRAFT_VOCABULARY = 5, 32, 4, 200, 120  # of the pair
RUN_LAYERS, RUN_EXPERTS, RUN_VOCABULARY, RUN_DRAFT_VOCABULARY = 4, 16, 264, 200  # of the runnable
AUX_LAYERS = (1, 2, 4)
CONTEXT = 1024
PROFILE = Profile("test", link_gbps=1.0, fixed_ms=10.0)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}"
)


def __getattr__(name: str) -> Any:
    """CPU, for tests that import it: torch takes seconds, also those of xdist's own process."""
    if name != "CPU":
        raise AttributeError(name)
    import torch

    return torch.device("cpu")


# -- the pair of exact tests -----------------------------------------------------------------------


@dataclass(eq=False)
class Pair:
    """Two folders, and what tests build from them. One target at a time: they share the weights."""

    target_folder: Path
    drafter_folder: Path
    prompts: list[np.ndarray]
    _greedy: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    @cached_property
    def plain(self) -> Any:
        """The unmodified transformers model in fp32."""
        import torch
        from transformers import AutoModelForCausalLM

        return AutoModelForCausalLM.from_pretrained(self.target_folder, dtype=torch.float32).eval()

    @cached_property
    def loaded(self) -> LoadedModel:
        import torch

        from specfit.models.target.checkpoint import Checkpoint
        from specfit.models.target.loading import load_model

        cpu = torch.device("cpu")
        return load_model(Checkpoint(self.target_folder), torch.float32, cpu, None)

    @cached_property
    def head(self) -> EagleHead:
        from specfit.models.drafter.checkpoint import load_head

        return load_head(self.drafter_folder, self.loaded.model.config)

    @property
    def stop_ids(self) -> frozenset[int]:
        stored = json.loads((self.target_folder / "generation_config.json").read_text())
        return frozenset(stored["eos_token_id"])

    def target(self, slots: int, in_flight: int = 2, chunk: int | None = None) -> OffloadedTarget:
        import torch

        from specfit.experts.cache import ExpertCache
        from specfit.experts.copies import CpuCopyEngine
        from specfit.experts.engine import ExpertEngine
        from specfit.experts.kernels.choice import choose_arithmetic
        from specfit.models.target.offloaded import OffloadedTarget

        shape, cpu = self.loaded.geometry, torch.device("cpu")
        cache = ExpertCache(shape.layers, shape.experts, slots, staging_blocks=in_flight + 1)
        copies = CpuCopyEngine(in_flight)
        arithmetic = choose_arithmetic("auto", self.loaded.activation, cpu, self.loaded.format)
        engine = ExpertEngine(self.loaded.store, cache, copies, arithmetic, cpu)
        return OffloadedTarget(self.loaded, engine, self.head.config.aux_layer_ids, chunk, cpu)

    def drafter(self, max_depth: int = 5) -> EagleDrafter:
        import torch

        from specfit.models.drafter.eagle import EagleDrafter

        return EagleDrafter(self.head, max_depth, 2, torch.device("cpu"))

    def oracle(self, indices: Iterable[int], new_tokens: int) -> OracleDrafter:
        """Drafts the true continuation of these prompts, now and then with a gap."""
        texts = [[*self.prompts[i].tolist(), *self.greedy(i, new_tokens)] for i in indices]
        starts = [len(self.prompts[i]) for i in indices]
        return OracleDrafter(dict(zip(map(tuple, texts), starts, strict=True)))

    def clock(self) -> ModelledClock:
        from specfit.hardware.clock import ModelledClock

        expert_bytes = self.loaded.store.block_bytes
        return ModelledClock(PROFILE, Billing.own(self.loaded.geometry.layers, expert_bytes))

    def request(self, index: int, new_tokens: int) -> Request:
        return Request(f"r{index}", self.prompts[index], new_tokens, self.stop_ids)

    def greedy(self, index: int, new_tokens: int) -> list[int]:
        """What `generate(do_sample=False)` of plain transformers says."""
        key = index, new_tokens
        if key not in self._greedy:
            self._greedy[key] = generate(self.plain, self.prompts[index], new_tokens)
        return self._greedy[key]

    def plain_forward(self, ids: Iterable[int]) -> Any:
        """Logits and `hidden_states` of one plain pass over the whole text."""
        import torch

        tokens = torch.as_tensor(list(ids), dtype=torch.long)[None]
        with torch.inference_mode():
            return self.plain(tokens, output_hidden_states=True, use_cache=False)

    def plain_features(self, ids: Iterable[int]) -> torch.Tensor:
        """[T, 3H] of a text."""
        import torch

        states = self.plain_forward(ids).hidden_states
        return torch.cat([states[layer][0] for layer in self.head.config.aux_layer_ids], dim=-1)


def generate(model: Any, prompt: np.ndarray, new_tokens: int) -> list[int]:
    import torch

    ids = torch.as_tensor(prompt, dtype=torch.long)[None]
    with torch.inference_mode():
        out = model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=new_tokens
        )
    return out[0, len(prompt) :].tolist()


class OracleDrafter:
    """Knows each text; every level holds its next token (unless `gap`), and wrong siblings.

    Shape of the pool as in EAGLE: the right node and a wrong one are expanded, two children each.
    The right child comes first or second, is likelier or not, by its position.
    """

    def __init__(self, texts: dict[tuple[int, ...], int], max_depth: int = 5) -> None:
        self.max_depth, self._texts = max_depth, texts
        self.begin()

    def begin(self) -> None:
        self.length, self._text = 0, ()

    def truncate(self, length: int) -> None:
        self.length = length

    def extend(self, tokens: np.ndarray, features: Any) -> None:
        assert len(tokens) == len(features)
        if self.length == 0:
            self._text = next(
                text for text, start in self._texts.items() if text[1:start] == tuple(tokens)
            )
        self.length += len(tokens)

    @staticmethod
    def gap(position: int) -> bool:
        return position % 7 == 3

    def grow(self, tree: DraftTree) -> DraftTree:
        at = self.length + tree.levels + 1  # position of the tokens of this level
        right = self._text[at] if at < len(self._text) else 0
        if self.gap(at):
            right = (right + 1) % VOCABULARY
        tokens: list[int] = []
        parents: list[int] = []
        probs: list[int] = []
        for parent in self._beam(tree):
            above = PROBABILITY_ONE if parent == ROOT else int(tree.path_probs[parent])
            wrong = (right + 2 + at + parent) % VOCABULARY
            pair = [right, wrong] if wrong != right else [right, (right + 1) % VOCABULARY]
            tokens += pair if at % 3 else pair[::-1]
            parents += [parent, parent]
            probs += (
                [above * 5 // 8, above * 2 // 8] if at % 2 else [above * 3 // 8, above * 4 // 8]
            )
        return tree.grown(np.array(tokens), np.array(parents), np.array(probs))

    def _beam(self, tree: DraftTree) -> list[int]:
        if len(tree) == 0:
            return [ROOT]
        newest = np.flatnonzero(tree.depths == tree.levels)
        true_path = self._text[self.length + 1 :]
        along = [
            n
            for n in newest.tolist()
            if [int(tree.tokens[i]) for i in tree.path(n)] == list(true_path[: tree.levels])
        ]
        others = [n for n in newest.tolist() if n not in along]
        return sorted([*along, *others][:2])


def make_pair(folder: Path) -> Pair:
    import torch

    torch.set_num_threads(1)
    rng = np.random.default_rng(7)
    prompts = [rng.integers(3, VOCABULARY, size) for size in (9, 17, 33, 5)]
    shape = {"hidden_size": 64, "intermediate_size": 96, "head_dim": 32, "vocab_size": VOCABULARY}
    torch.manual_seed(111)
    model = _target(
        **shape,
        moe_intermediate_size=24,
        num_hidden_layers=LAYERS,
        num_experts=EXPERTS,
        norm_topk_prob=True,
        max_position_embeddings=512,
        rope_theta=1e6,
        initializer_range=0.3,
    )
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("norm.weight"):
                weight.uniform_(0.5, 1.5)  # ones would hide a norm that is left out
    model.save_pretrained(folder / "target", max_shard_size="2500KB")
    _name_stop_ids(folder / "target", model, prompts)
    torch.manual_seed(13)

    def some() -> torch.Tensor:
        return torch.randperm(VOCABULARY)[:DRAFT_VOCABULARY].sort().values

    shape |= {"draft_vocab_size": DRAFT_VOCABULARY, "aux_layer_ids": AUX_LAYERS, "rope_theta": 1e4}
    head = _head(some, 0.15, norms=(0.5, 1.5), **shape)
    with torch.no_grad():
        head.embed_tokens.weight.copy_(model.model.embed_tokens.weight)
    _save(folder / "drafter", head, num_hidden_layers=5)
    return Pair(folder / "target", folder / "drafter", prompts)


def _target(**shape: Any) -> Any:
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "num_experts_per_tok": TOP_K}
    return Qwen3MoeForCausalLM(Qwen3MoeConfig(**heads, **shape, tie_word_embeddings=False)).eval()


def _head(
    kept: Callable[[], torch.Tensor],
    spread: float,
    norms: tuple[float, float] | None = None,
    **shape: Any,
) -> EagleHead:
    """`kept` are the ids of the draft vocabulary, drawn once the head is there; `norms` the range
    of norm weights, else ones."""
    import torch

    from specfit.models.drafter.head import EagleHead, HeadConfig

    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "norm_before_residual": True}
    head = EagleHead(HeadConfig(**heads, **shape, target_hidden_size=shape["hidden_size"]))
    ids = kept()
    with torch.no_grad():
        for name, weight in head.named_parameters():
            if not name.endswith("norm.weight"):
                weight.normal_(0.0, spread)
            elif norms is not None:
                weight.uniform_(*norms)
        head.d2t.copy_(ids - torch.arange(len(ids)))
        head.t2d.zero_()
        head.t2d[ids] = True
    return head


def _save(folder: Path, head: EagleHead, **verifier: Any) -> None:
    from specfit.models.drafter.checkpoint import save_head

    of = {"name_or_path": "tiny", "architectures": ["Qwen3MoeForCausalLM"]}
    save_head(folder, head, of | verifier)


def _name_stop_ids(folder: Path, model: Any, prompts: list[np.ndarray]) -> None:
    """Two ids: one that the first prompt's text reaches after a while, one that hardly comes."""
    said = generate(model, prompts[0], 30)
    late = next(token for token in said[12:] if token not in said[:12])
    stored = json.loads((folder / "generation_config.json").read_text())
    stored |= {"eos_token_id": [0, late], "pad_token_id": 0}
    (folder / "generation_config.json").write_text(json.dumps(stored))


# -- the pair of whole runs ------------------------------------------------------------------------


@dataclass(frozen=True)
class Runnable:
    target: Path
    drafter: Path

    @property
    def overrides(self) -> list[str]:
        return [f"model.path={self.target}", f"drafter.path={self.drafter}"]

    def copied_to(self, folder: Path) -> Runnable:
        """A copy to damage."""
        shutil.copytree(self.target, folder / "target")
        shutil.copytree(self.drafter, folder / "drafter")
        return Runnable(folder / "target", folder / "drafter")


def make_runnable(folder: Path, experts: int = RUN_EXPERTS) -> Runnable:
    import torch

    shape = {"hidden_size": 32, "intermediate_size": 48, "head_dim": 16}
    shape["vocab_size"] = RUN_VOCABULARY
    torch.manual_seed(5)
    model = _target(
        **shape,
        moe_intermediate_size=16,
        num_hidden_layers=RUN_LAYERS,
        num_experts=experts,
        max_position_embeddings=CONTEXT,
        initializer_range=0.2,
    )
    with torch.no_grad():
        model.lm_head.weight[:3] = 0.0  # special tokens are never the best: answers are long
    model.save_pretrained(folder / "target", max_shard_size="200KB")
    _tokenizer().save_pretrained(folder / "target")
    generation = {"do_sample": False, "eos_token_id": [2, 0], "pad_token_id": 0}
    (folder / "target" / "generation_config.json").write_text(json.dumps(generation))
    torch.manual_seed(6)
    head = _head(
        lambda: torch.arange(RUN_VOCABULARY - RUN_DRAFT_VOCABULARY, RUN_VOCABULARY),
        0.2,
        **shape,
        draft_vocab_size=RUN_DRAFT_VOCABULARY,
        aux_layer_ids=(0, 1, 3),
    )
    _save(folder / "drafter", head)
    return Runnable(folder / "target", folder / "drafter")


def _tokenizer():  # type: ignore[no-untyped-def]
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    bytewise = Tokenizer(models.BPE({piece: i for i, piece in enumerate(alphabet)}, []))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=bytewise,
        eos_token=SPECIAL[2],
        pad_token=SPECIAL[0],
        additional_special_tokens=[SPECIAL[1]],
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


# -- damage ----------------------------------------------------------------------------------------


def edit_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@contextmanager
def edit_tensors(path: Path) -> Iterator[dict[str, torch.Tensor]]:
    from safetensors.torch import load_file, save_file

    tensors = load_file(path)
    yield tensors
    save_file({name: t.clone() for name, t in tensors.items()}, path, metadata={"format": "pt"})


def shard_of(folder: Path, tensor: str) -> Path:
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    return folder / index["weight_map"][tensor]


# -- the command line ------------------------------------------------------------------------------


@dataclass(frozen=True)
class JobResult:
    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one line on stderr."""
        lines = self.err.splitlines()
        assert len(lines) == 1 and lines[0].startswith("specfit: "), self.err
        return lines[0].removeprefix("specfit: ")


Command = Callable[..., JobResult]


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return make_pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture(scope="session")
def runnable(tmp_path_factory: pytest.TempPathFactory) -> Runnable:
    return make_runnable(tmp_path_factory.mktemp("runnable"))


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`python -m specfit.run`, in this process."""
    return in_process("run", monkeypatch, capsys)


@pytest.fixture
def record_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`python -m specfit.record`, in this process."""
    return in_process("record", monkeypatch, capsys)


def in_process(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """The entry point of that name; its job has the module's name."""

    def ended(*arguments: str) -> JobResult:
        from hydra.core.global_hydra import GlobalHydra

        from specfit.workflows.hydra_cli import hydra_command

        job = getattr(import_module(f"specfit.{name}"), name)
        GlobalHydra.instance().clear()
        monkeypatch.setattr(sys, "argv", [f"specfit.{name}", *map(str, arguments)])
        capsys.readouterr()
        code = hydra_command(job)
        captured = capsys.readouterr()
        return JobResult(code, captured.out, captured.err)

    return ended


def in_process_script(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """`python <folder>/<name>.py ..`, in this process, which need not import torch again."""
    monkeypatch.syspath_prepend(str(folder))

    def ended(*arguments: str) -> JobResult:
        from hydra.core.global_hydra import GlobalHydra

        from specfit.base.entry import script

        GlobalHydra.instance().clear()
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
        capsys.readouterr()
        code = script(import_module(name).main)
        captured = capsys.readouterr()
        return JobResult(code, captured.out, captured.err)

    return ended


@pytest.fixture(scope="session")
def calibration(runnable: Runnable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fit of the pair at calibration.slots=4, made once: 144 probes."""
    from specfit.base.config import from_hydra
    from specfit.decoding.calibration.files import calibrated_cost
    from specfit.decoding.live import build_runtime
    from specfit.decoding.resolve import resolve
    from specfit.workflows.hydra_cli import compose

    folder = tmp_path_factory.mktemp("calibrated")
    settings = [f"results_dir={folder}", "calibration.slots=4", "cache_slots=4"]
    spec = resolve(from_hydra(compose([*runnable.overrides, *settings])))
    return calibrated_cost(spec, build_runtime, folder).path
