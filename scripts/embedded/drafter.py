"""The embedded EAGLE-3 head: its vocabulary, its shape and its training against the stored target."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import torch
from embedded.progress import Budget, Curve, learning_rate, load_checkpoint, save_checkpoint
from embedded.stream import Stream
from torch import Tensor, nn
from transformers import Qwen3MoeForCausalLM

from specfit.drafter.checkpoint import save_head
from specfit.drafter.config_file import default_aux_layers
from specfit.drafter.head import EagleHead, HeadConfig
from specfit.drafter.training import TttBatch, ttt_losses

CHECKPOINT_EVERY_S = 60
REPORT_EVERY_S = 60
DRAFT_VOCABULARY = 1024


@dataclass(frozen=True)
class DrafterPlan:
    peak_rate: float = 2e-3
    warmup_steps: int = 50
    steps_ahead: int = 6  # T of the training-time test
    rows: int = 4
    length: int = 512
    step_decay: float = 0.8


def head_config(target: Qwen3MoeForCausalLM) -> HeadConfig:
    """rope_theta differs from the target's 1e6 on purpose, as the public heads' does."""
    config = target.config
    return HeadConfig(
        hidden_size=config.hidden_size,
        intermediate_size=512,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=32,
        vocab_size=config.vocab_size,
        draft_vocab_size=DRAFT_VOCABULARY,
        aux_layer_ids=default_aux_layers(config.num_hidden_layers),
        norm_before_residual=True,
        target_hidden_size=config.hidden_size,
        rope_theta=1e4,
        max_position_embeddings=config.max_position_embeddings,
    )


def draft_vocabulary(stream: Stream, vocabulary: int, size: int) -> Tensor:
    """The `size` most frequent target ids among answer tokens (ties: lower id), ascending."""
    ids = torch.from_numpy(stream.tokens[stream.assistant].astype("int64"))
    counts = torch.bincount(ids, minlength=vocabulary)
    return torch.sort(-counts, stable=True).indices[:size].sort().values


def new_head(target: Qwen3MoeForCausalLM, stream: Stream, seed: int) -> EagleHead:
    """Fresh head; embeddings are the target's and stay so, lm_head starts from the target's rows."""
    torch.manual_seed(seed)
    config = head_config(target)
    head = EagleHead(config)
    ids = draft_vocabulary(stream, config.vocab_size, config.draft_vocab_size)
    head.d2t.copy_(ids - torch.arange(len(ids)))
    head.t2d.zero_()
    head.t2d[ids] = True
    with torch.no_grad():
        head.embed_tokens.weight.copy_(target.model.embed_tokens.weight)
        head.lm_head.weight.copy_(target.lm_head.weight[ids])
        head.norm.weight.copy_(target.model.norm.weight)
    head.embed_tokens.weight.requires_grad_(False)
    return head


@torch.no_grad()
def target_batch(target: Qwen3MoeForCausalLM, ids: Tensor, scored: Tensor) -> TttBatch:
    """One target pass over ids [B, L]: the aux features and logits the head learns from."""
    layers = default_aux_layers(target.config.num_hidden_layers)
    output = target(input_ids=ids, use_cache=False, output_hidden_states=True)
    aux = torch.cat([output.hidden_states[i] for i in layers], dim=-1)
    return TttBatch(tokens=ids, aux=aux, target_logits=output.logits, scored=scored)


def train(
    work: Path,
    head: EagleHead,
    target: Qwen3MoeForCausalLM,
    stream: Stream,
    development: dict[str, Stream],
    plan: DrafterPlan,
    minutes: float,
) -> None:
    """Train until `minutes` are spent; goes on from work/drafter.pt where that exists."""
    trained = [p for p in head.parameters() if p.requires_grad]
    optim = torch.optim.AdamW(
        trained, lr=plan.peak_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True
    )
    state = load_checkpoint(work / "drafter.pt")
    step = position = 0
    if state is not None:
        head.load_state_dict(state["model"])
        optim.load_state_dict(state["optimizer"])
        step, position = state["step"], state["position"]
    budget = Budget(minutes, state["elapsed_s"] if state else 0.0)
    curve = Curve(work / "drafter_curve.csv")
    saved_s = reported_s = budget.elapsed_s
    loss = float("nan")
    while budget.fraction < 1.0:
        rate = learning_rate(plan.peak_rate, step, plan.warmup_steps, budget.fraction)
        for group in optim.param_groups:
            group["lr"] = rate
        ids, assistant = stream.rows(position, plan.rows, plan.length)
        batch = target_batch(target, ids, assistant)
        result = ttt_losses(head, batch, plan.steps_ahead)
        weighted = sum(plan.step_decay**i * x for i, x in enumerate(result.losses))
        assert isinstance(weighted, Tensor)
        weighted.backward()
        nn.utils.clip_grad_norm_(trained, 0.5)
        optim.step()
        optim.zero_grad(set_to_none=True)
        loss = weighted.item()
        step, position = step + 1, position + plan.rows * plan.length
        if budget.elapsed_s - reported_s > REPORT_EVERY_S or step == 1:
            reported_s = budget.elapsed_s
            report(head, target, development, curve, plan, step, loss, reported_s)
        if budget.elapsed_s - saved_s > CHECKPOINT_EVERY_S or budget.fraction >= 1.0:
            saved_s = budget.elapsed_s
            saved = {"model": head.state_dict(), "optimizer": optim.state_dict()}
            save_checkpoint(
                work / "drafter.pt",
                {**saved, "step": step, "position": position, "elapsed_s": saved_s},
            )
    report(head, target, development, curve, plan, step, loss, budget.elapsed_s)


@torch.no_grad()
def agreement(
    head: EagleHead, target: Qwen3MoeForCausalLM, stream: Stream, rows: int, steps: int
) -> list[float]:
    """Per step ahead: share of answer positions where head and target have the same top token.

    A training statistic on given text: no tree, no verification.
    """
    agreed = torch.zeros(steps)
    counted = torch.zeros(steps)
    for row in range(rows):
        ids, assistant = stream.rows(row * 1024, 1, 1024)
        result = ttt_losses(head, target_batch(target, ids, assistant), steps)
        agreed += torch.tensor(result.agreed)
        counted += torch.tensor(result.counted)
    return (agreed / counted.clamp(min=1)).tolist()


def report(
    head: EagleHead,
    target: Qwen3MoeForCausalLM,
    development: dict[str, Stream],
    curve: Curve,
    plan: DrafterPlan,
    step: int,
    loss: float,
    elapsed_s: float,
) -> None:
    row: dict[str, object] = {"step": step, "elapsed_s": round(elapsed_s), "loss": f"{loss:.4f}"}
    for name, stream in development.items():
        values = agreement(head, target, stream, 2, plan.steps_ahead)
        row |= {f"{name}_agree_{i}": f"{v:.4f}" for i, v in enumerate(values)}
    curve.add(row)
    print(time.strftime("%H:%M:%S"), " ".join(f"{k}={v}" for k, v in row.items()), flush=True)


def save(head: EagleHead, target: Qwen3MoeForCausalLM, folder: Path) -> None:
    """bf16, as public heads are."""
    verifier = {
        "name_or_path": "specfit/embedded-target",
        "architectures": ["Qwen3MoeForCausalLM"],
        "num_hidden_layers": target.config.num_hidden_layers,
    }
    rounded = EagleHead(head.config)
    rounded.load_state_dict(head.state_dict())
    save_head(folder, rounded.to(torch.bfloat16), verifier)
