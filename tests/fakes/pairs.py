"""A tiny random target and draft head in the real formats, and an oracle that drafts what is right.

Every default a loader might wrongly assume is another value here: heads x head_dim != hidden, fewer
key/value heads, untied embeddings, two stop ids, two shards, a head of reduced vocabulary with its
own RoPE base. Weights are wide, so that experts matter and greedy text does not settle at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

from specfit.base.types import PROBABILITY_ONE, ROOT, DraftTree, Request
from specfit.experts.cache import ExpertCache
from specfit.experts.copies import CpuCopyEngine
from specfit.experts.engine import ExpertEngine
from specfit.experts.kernels.choice import choose_arithmetic
from specfit.hardware.clock import ModelledClock
from specfit.hardware.profile import Billing, Profile
from specfit.models.drafter.checkpoint import load_head, save_head
from specfit.models.drafter.eagle import EagleDrafter
from specfit.models.drafter.head import EagleHead, HeadConfig
from specfit.models.target.checkpoint import Checkpoint
from specfit.models.target.loading import LoadedModel, load_model
from specfit.models.target.offloaded import OffloadedTarget

CPU = torch.device("cpu")
LAYERS, EXPERTS, TOP_K, VOCABULARY, DRAFT_VOCABULARY = 5, 32, 4, 200, 120
AUX_LAYERS = (1, 2, 4)
PROFILE = Profile("test", link_gbps=1.0, fixed_ms=10.0)


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
        return AutoModelForCausalLM.from_pretrained(self.target_folder, dtype=torch.float32).eval()

    @cached_property
    def loaded(self) -> LoadedModel:
        return load_model(Checkpoint(self.target_folder), torch.float32, CPU, None)

    @cached_property
    def head(self) -> EagleHead:
        return load_head(self.drafter_folder, self.loaded.model.config)

    @property
    def stop_ids(self) -> frozenset[int]:
        stored = json.loads((self.target_folder / "generation_config.json").read_text())
        return frozenset(stored["eos_token_id"])

    def target(self, slots: int, in_flight: int = 2, chunk: int | None = None) -> OffloadedTarget:
        shape = self.loaded.geometry
        cache = ExpertCache(shape.layers, shape.experts, slots, staging_blocks=in_flight + 1)
        copies = CpuCopyEngine(in_flight)
        arithmetic = choose_arithmetic("auto", self.loaded.activation, CPU, self.loaded.format)
        engine = ExpertEngine(self.loaded.store, cache, copies, arithmetic, CPU)
        return OffloadedTarget(self.loaded, engine, self.head.config.aux_layer_ids, chunk, CPU)

    def drafter(self, max_depth: int = 5) -> EagleDrafter:
        return EagleDrafter(self.head, max_depth, 2, CPU)

    def oracle(self, indices: Iterable[int], new_tokens: int) -> OracleDrafter:
        """Drafts the true continuation of these prompts, now and then with a gap."""
        texts = [[*self.prompts[i].tolist(), *self.greedy(i, new_tokens)] for i in indices]
        starts = [len(self.prompts[i]) for i in indices]
        return OracleDrafter(dict(zip(map(tuple, texts), starts, strict=True)))

    def clock(self) -> ModelledClock:
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

    @torch.inference_mode()
    def plain_forward(self, ids: Iterable[int]) -> Any:
        """Logits and `hidden_states` of one plain pass over the whole text."""
        tokens = torch.as_tensor(list(ids), dtype=torch.long)[None]
        return self.plain(tokens, output_hidden_states=True, use_cache=False)

    def plain_features(self, ids: Iterable[int]) -> torch.Tensor:
        """[T, 3H] of a text."""
        states = self.plain_forward(ids).hidden_states
        return torch.cat([states[layer][0] for layer in self.head.config.aux_layer_ids], dim=-1)


def generate(model: Any, prompt: np.ndarray, new_tokens: int) -> list[int]:
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


# -- making the pair -----------------------------------------------------------------------------


def make_pair(folder: Path) -> Pair:
    torch.set_num_threads(1)
    rng = np.random.default_rng(7)
    prompts = [rng.integers(3, VOCABULARY, size) for size in (9, 17, 33, 5)]
    target, drafter = folder / "target", folder / "drafter"
    model = _random_target()
    model.save_pretrained(target, max_shard_size="2500KB")
    _name_stop_ids(target, model, prompts)
    save_head(
        drafter,
        _random_head(model),
        {"name_or_path": "tiny", "architectures": ["Qwen3MoeForCausalLM"], "num_hidden_layers": 5},
    )
    return Pair(target, drafter, prompts)


def _random_target() -> Qwen3MoeForCausalLM:
    torch.manual_seed(111)
    config = Qwen3MoeConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=96,
        moe_intermediate_size=24,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        num_experts=EXPERTS,
        num_experts_per_tok=TOP_K,
        norm_topk_prob=True,
        tie_word_embeddings=False,
        max_position_embeddings=512,
        rope_theta=1e6,
        initializer_range=0.3,
    )
    model = Qwen3MoeForCausalLM(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("norm.weight"):
                weight.uniform_(0.5, 1.5)  # ones would hide a norm that is left out
    return model


def _name_stop_ids(folder: Path, model: Any, prompts: list[np.ndarray]) -> None:
    """Two ids: one that the first prompt's text reaches after a while, one that hardly comes."""
    said = generate(model, prompts[0], 30)
    late = next(token for token in said[12:] if token not in said[:12])
    stored = json.loads((folder / "generation_config.json").read_text())
    stored |= {"eos_token_id": [0, late], "pad_token_id": 0}
    (folder / "generation_config.json").write_text(json.dumps(stored))


def _random_head(model: Any) -> EagleHead:
    torch.manual_seed(13)
    config = HeadConfig(
        hidden_size=64,
        intermediate_size=96,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        vocab_size=VOCABULARY,
        draft_vocab_size=DRAFT_VOCABULARY,
        aux_layer_ids=AUX_LAYERS,
        norm_before_residual=True,
        target_hidden_size=64,
        rope_theta=1e4,
    )
    head = EagleHead(config)
    kept = torch.randperm(VOCABULARY)[:DRAFT_VOCABULARY].sort().values
    with torch.no_grad():
        for name, weight in head.named_parameters():
            if name.endswith("norm.weight"):
                weight.uniform_(0.5, 1.5)
            else:
                weight.normal_(0.0, 0.15)
        head.embed_tokens.weight.copy_(model.model.embed_tokens.weight)
        head.d2t.copy_(kept - torch.arange(DRAFT_VOCABULARY))
        head.t2d.zero_()
        head.t2d[kept] = True
    return head
