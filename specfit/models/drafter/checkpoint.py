"""Reading and writing draft heads: `config.json` + `model.safetensors`, one canonical set of names.

Read are the formats of speculators, SafeAILab/EAGLE and SpecForge; written is the first. Whatever
does not fit is refused with one sentence that names the tensor and both shapes: a head that loads
and is subtly wrong only shows as a low acceptance length.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from specfit.base.types import SpecfitError
from specfit.models.drafter.head import EagleHead, HeadConfig
from specfit.models.drafter.head_config import config_to_json, read_config
from specfit.models.schema import read_json

# (prefix in the file, canonical prefix), replaced one after the other: the names of every format,
# since none of them means something else in another.
NAMES: tuple[tuple[str, str], ...] = (("model.", ""), ("midlayer.", "layers.0."))
# Not needed to draft: the target's own weights, or rebuilt from the config.
IGNORED = ("verifier_", "rotary_emb.")

TARGET_EMBEDDING = "model.embed_tokens.weight"
TargetWeights = Callable[[str], Tensor]


def load_head(
    path: Path,
    target_config: Any,
    target_weights: TargetWeights | None = None,
    norm_feedback: str = "auto",
) -> EagleHead:
    """The head stored in folder `path`, checked against the target it is to draft for.

    target_config: the target's HF config (hidden_size, vocab_size, num_hidden_layers are read).
    target_weights: name -> tensor of the target, asked only for embeddings or an lm_head that the
    head's file leaves out, and for the embedding, which is shared where the file's is equal. The
    rest keeps the dtype of its file. norm_feedback: before or after, whatever the file says.
    """
    config, tensors = _checked(Path(path), target_config, target_weights)
    if norm_feedback != "auto":
        config = replace(config, norm_output=norm_feedback == "after", feedback_unknown=False)
    if target_weights is not None:
        _share_embedding(tensors, target_weights(TARGET_EMBEDDING))
    with torch.device("meta"):
        head = EagleHead(config)
    head.load_state_dict(tensors, assign=True)
    return head.requires_grad_(False).eval()


def check_head(path: Path, target_config: Any) -> None:
    """Raises SpecfitError for a head that `load_head` would refuse beside this target, whose own
    weights are not needed."""
    shape = target_config.vocab_size, target_config.hidden_size
    _checked(Path(path), target_config, lambda _: torch.empty(shape, device="meta"))


def _checked(
    path: Path, target_config: Any, target_weights: TargetWeights | None
) -> tuple[HeadConfig, dict[str, Tensor]]:
    fields = read_json(path / "config.json")
    tensors = canonical_names(_read_tensors(path / "model.safetensors"))
    rows = tensors["lm_head.weight"].shape[0] if "lm_head.weight" in tensors else None
    config = read_config(fields, target_config, rows)
    _check_dtypes(tensors)
    _check_head_dim(fields, tensors, config)
    _check_tied(fields, tensors, target_config)
    _complete(tensors, config, target_weights)
    _check_shapes(tensors, config)
    _check_vocabulary(tensors, config)
    return config, tensors


def save_head(path: Path, head: EagleHead, verifier: Mapping[str, Any]) -> None:
    """Write `head` to folder `path` in the speculators format.

    verifier: `name_or_path` and `architectures` of the target, for identification only.
    """
    path.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.contiguous() for name, tensor in head.state_dict().items()}
    if head.config.draft_vocab_size == head.config.vocab_size:
        del weights["d2t"], weights["t2d"]
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    dtype = str(head.fc.weight.dtype).removeprefix("torch.")
    text = json.dumps(config_to_json(head.config, dtype, verifier), indent=2)
    (path / "config.json").write_text(text + "\n")


def canonical_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename file tensors to the canonical set and drop what drafting does not need."""
    renamed: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        for prefix, canonical in NAMES:
            if name.startswith(prefix):
                name = canonical + name.removeprefix(prefix)
        if not any(part in name for part in IGNORED):
            renamed[name] = tensor
    return renamed


def _read_tensors(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        kinds = ("*.bin", "*.pt", "*.pth", "*.ckpt")
        pickled = next((file for kind in kinds for file in path.parent.glob(kind)), None)
        if pickled is not None:
            raise SpecfitError(
                f"The draft head in {path.parent} is a pickle ({pickled.name}), which could run "
                f"any code when it is read; convert it to {path.name} with safetensors first."
            )
        shards = sorted(shard.name for shard in path.parent.glob("*.safetensors*"))
        if shards:
            raise SpecfitError(
                f"The draft head in {path.parent} lies in shards ({shards[0]}, ..); expected one "
                f"{path.name}: load it and save it whole with safetensors."
            )
        raise SpecfitError(f"The draft head's {path} does not exist.")
    try:
        return load_file(path)
    except Exception as error:  # safetensors raises its own unexported class
        raise SpecfitError(f"The draft head's {path} is damaged: {error}.") from None


def _check_dtypes(tensors: Mapping[str, Tensor]) -> None:
    """A quantised weight cast without its scale would draft nonsense."""
    for name, tensor in tensors.items():
        if name in ("d2t", "t2d"):
            if tensor.is_floating_point():
                raise SpecfitError(
                    f"The draft head's tensor {name} is {tensor.dtype}; expected integers."
                )
        elif tensor.dtype not in (torch.float32, torch.float16, torch.bfloat16):
            raise SpecfitError(
                f"The draft head's tensor {name} is stored as {tensor.dtype}; expected float32, "
                "float16 or bfloat16, without a quantisation."
            )


def _check_head_dim(
    fields: Mapping[str, Any], tensors: Mapping[str, Tensor], config: HeadConfig
) -> None:
    """An assumed head_dim is named where a shape contradicts it."""
    layer = fields.get("transformer_layer_config", fields)
    stored = tensors.get("layers.0.self_attn.o_proj.weight")
    if layer.get("head_dim") is not None or stored is None:
        return
    width = stored.shape[-1]
    if width != config.num_attention_heads * config.head_dim:
        raise SpecfitError(
            f"The draft head's config names no head_dim, for which {config.head_dim} is assumed, "
            f"and its o_proj.weight has {width} columns for {config.num_attention_heads} heads; "
            f"add head_dim={width // config.num_attention_heads} to its config.json."
        )


def _check_tied(
    fields: Mapping[str, Any], tensors: Mapping[str, Tensor], target_config: Any
) -> None:
    """`tie_word_embeddings` without an lm_head of its own means the head's embedding."""
    layer = fields.get("transformer_layer_config", fields)
    says_tied = layer.get("tie_word_embeddings") or fields.get("tie_word_embeddings")
    target_tied = getattr(target_config, "tie_word_embeddings", False)
    if says_tied and "lm_head.weight" not in tensors and not target_tied:
        raise SpecfitError(
            "The draft head sets tie_word_embeddings=true and stores no lm_head.weight, and the "
            "target's output head is not tied; expected lm_head.weight in the head's file."
        )


def _complete(
    tensors: dict[str, Tensor], config: HeadConfig, target_weights: TargetWeights | None
) -> None:
    """Fill in what a file may leave out: embeddings, lm_head, vocabulary maps.

    The target's own tensors are taken as they are, so that they stay one copy.
    """
    same = config.draft_vocab_size == config.vocab_size
    if "d2t" in tensors:
        tensors["d2t"] = tensors["d2t"].to(torch.int64)
    elif same:
        tensors["d2t"] = torch.zeros(config.vocab_size, dtype=torch.int64)
    else:
        raise SpecfitError(
            f"The draft head has {config.draft_vocab_size} of the target's {config.vocab_size} "
            f"tokens but no tensor d2t to map them; expected d2t [{config.draft_vocab_size}]."
        )
    for name, source in (
        ("embed_tokens.weight", TARGET_EMBEDDING),
        ("lm_head.weight", "lm_head.weight"),
    ):
        if name in tensors:
            continue
        if target_weights is None:
            raise SpecfitError(f"The draft head's file lacks {name} and no target is at hand.")
        weight = target_weights(source)
        if name == "lm_head.weight" and not same:
            ids = torch.arange(config.draft_vocab_size) + tensors["d2t"]
            _check_range(ids, config)
            weight = weight[ids.to(weight.device)]
        tensors[name] = weight


def _check_shapes(tensors: Mapping[str, Tensor], config: HeadConfig) -> None:
    with torch.device("meta"):
        expected = {name: t.shape for name, t in EagleHead(config).state_dict().items()}
    for name, shape in expected.items():
        if name == "t2d" and name not in tensors:
            continue
        if name not in tensors:
            raise SpecfitError(f"The draft head lacks tensor {name}; expected {list(shape)}.")
        found = tensors[name].shape
        if found != shape:
            raise SpecfitError(
                f"The draft head's tensor {name} does not fit its config and the target: "
                f"expected {list(shape)}, found {list(found)}."
            )
    unknown = sorted(tensors.keys() - expected.keys())
    if unknown:
        raise SpecfitError(
            f"The draft head has tensor {unknown[0]} {list(tensors[unknown[0]].shape)}, which its "
            f"config does not announce; expected no such tensor."
        )


def _check_vocabulary(tensors: dict[str, Tensor], config: HeadConfig) -> None:
    """d2t is an *offset*; stored as absolute ids or zeros it drafts nonsense without an error."""
    ids = torch.arange(config.draft_vocab_size) + tensors["d2t"]
    if not bool((ids[1:] > ids[:-1]).all()):
        raise SpecfitError(
            f"The draft head's tensor d2t [{len(ids)}] is not an offset table: arange + d2t must "
            f"be strictly increasing, found a step of {int((ids[1:] - ids[:-1]).min())}."
        )
    _check_range(ids, config)
    t2d = torch.zeros(config.vocab_size, dtype=torch.bool)
    t2d[ids] = True
    if "t2d" in tensors and not torch.equal(tensors["t2d"].bool(), t2d):
        raise SpecfitError(
            f"The draft head's tensors d2t [{len(ids)}] and t2d [{config.vocab_size}] name "
            f"different target ids: expected t2d true exactly at arange + d2t."
        )
    if "t2d" not in tensors and config.draft_vocab_size < config.vocab_size and ids[-1] < len(ids):
        raise SpecfitError(
            f"The draft head's tensor d2t [{len(ids)}] is all zero, a placeholder; expected the "
            f"offsets of its {len(ids)} of {config.vocab_size} target ids."
        )
    tensors["t2d"] = t2d


def _check_range(ids: Tensor, config: HeadConfig) -> None:
    least, most = int(ids.min()), int(ids.max())
    if least < 0 or most >= config.vocab_size:
        raise SpecfitError(
            f"The draft head's tensor d2t [{len(ids)}] reaches target ids {least} to {most}; "
            f"expected ids inside the target vocabulary of {config.vocab_size}."
        )


def _share_embedding(tensors: dict[str, Tensor], target: Tensor) -> None:
    """Where the file repeats the target's embedding, the target's tensor is used: 0.6 GB less."""
    own = tensors["embed_tokens.weight"]
    if torch.equal(own.to(target.device, target.dtype), target):  # false where shapes differ
        tensors["embed_tokens.weight"] = target
