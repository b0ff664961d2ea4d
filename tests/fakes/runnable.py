"""A tiny random target and head that the real entry point runs in seconds, tokenizer and all.

`tests.fakes.pairs` has the pair for exact tests of the parts; this one is for whole runs: a
byte-level tokenizer with a chat template, and 4 layers, a divisor of the billed model's 48.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

LAYERS, EXPERTS, VOCABULARY, DRAFT_VOCABULARY, CONTEXT = 4, 16, 264, 200, 1024
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}"
)


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


def make_runnable(folder: Path, experts: int = EXPERTS) -> Runnable:
    from specfit.models.drafter.checkpoint import save_head

    model = _target(experts)
    model.save_pretrained(folder / "target", max_shard_size="200KB")
    _tokenizer().save_pretrained(folder / "target")
    generation = {"do_sample": False, "eos_token_id": [2, 0], "pad_token_id": 0}
    (folder / "target" / "generation_config.json").write_text(json.dumps(generation))
    verifier = {"name_or_path": "tiny", "architectures": ["Qwen3MoeForCausalLM"]}
    save_head(folder / "drafter", _head(), verifier)
    return Runnable(folder / "target", folder / "drafter")


def _target(experts: int) -> torch.nn.Module:
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    torch.manual_seed(5)
    config = Qwen3MoeConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        moe_intermediate_size=16,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        num_experts=experts,
        num_experts_per_tok=4,
        tie_word_embeddings=False,
        max_position_embeddings=CONTEXT,
        initializer_range=0.2,
    )
    model = Qwen3MoeForCausalLM(config).eval()
    with torch.no_grad():
        model.lm_head.weight[:3] = 0.0  # special tokens are never the best: answers are long
    return model


def _head() -> torch.nn.Module:
    from specfit.models.drafter.head import EagleHead, HeadConfig

    torch.manual_seed(6)
    config = HeadConfig(
        hidden_size=32,
        intermediate_size=48,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        vocab_size=VOCABULARY,
        draft_vocab_size=DRAFT_VOCABULARY,
        aux_layer_ids=(0, 1, 3),
        norm_before_residual=True,
        target_hidden_size=32,
    )
    head = EagleHead(config)
    kept = torch.arange(VOCABULARY - DRAFT_VOCABULARY, VOCABULARY)
    with torch.no_grad():
        for name, weight in head.named_parameters():
            if not name.endswith("norm.weight"):
                weight.normal_(0.0, 0.2)
        head.d2t.copy_(kept - torch.arange(DRAFT_VOCABULARY))
        head.t2d.zero_()
        head.t2d[kept] = True
    return head


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
