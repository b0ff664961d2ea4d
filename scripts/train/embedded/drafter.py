"""The embedded EAGLE-3 head: vocabulary, shape, and training against the stored target."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from embedded.progress import (
    Curve,
    Stopwatch,
    learning_rate,
    load_checkpoint,
    save_checkpoint,
    update,
)
from embedded.stream import Stream
from embedded.workers import Workers
from torch import Tensor, nn
from transformers import Qwen3MoeForCausalLM

from specfit.models.drafter.checkpoint import save_head
from specfit.models.drafter.head import EagleHead, HeadConfig
from specfit.models.drafter.head_config import default_aux_layers
from specfit.models.drafter.training import TttBatch, ttt_losses

CHECKPOINT_EVERY_S = 30
REPORTS = 5
DRAFT_VOCABULARY = 1024


@dataclass(frozen=True)
class DrafterPlan:
    peak_rate: float = 2e-3
    warmup_steps: int = 50
    steps_ahead: int = 6  # T of the training-time test
    tokens_per_step: int = 2048
    step_decay: float = 0.8
    prompt_weight: float = 0.2  # answer tokens count 1


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
    """Fresh head; the target's embeddings, which stay, and its lm_head rows to start from."""
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
    entering: dict[int, Tensor] = {}

    # hooks of our own: transformers' output_hidden_states stays empty in an unpickled model
    def keep(layer: int) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        return lambda _module, inputs: entering.__setitem__(layer, inputs[0])

    hooks = [target.model.layers[i].register_forward_pre_hook(keep(i)) for i in layers]
    logits = target(input_ids=ids, use_cache=False).logits
    for hook in hooks:
        hook.remove()
    aux = torch.cat([entering[i] for i in layers], dim=-1)
    return TttBatch(tokens=ids, aux=aux, target_logits=logits, scored=scored)


class DrafterWork:
    """Target pass, unrolled head and backward on ids [B, L + 1]. Prompts count a little: the head
    only ever drafts answers, but is too young to waste two thirds of its text."""

    def __init__(self, head: EagleHead, target: Qwen3MoeForCausalLM, plan: DrafterPlan) -> None:
        self.head, self.target, self.plan = head, target, plan

    def trained(self) -> list[nn.Parameter]:
        return [p for p in self.head.parameters() if p.requires_grad]

    def __call__(self, ids: Tensor, assistant: Tensor) -> dict[str, float]:
        scored = assistant.float().clamp(min=self.plan.prompt_weight)
        batch = target_batch(self.target, ids, scored)
        losses = ttt_losses(self.head, batch, self.plan.steps_ahead).losses
        weights = self.plan.step_decay ** torch.arange(len(losses))
        total = (torch.stack(losses) * weights).sum() / weights.sum()
        total.backward()
        return {"loss": total.item(), "first": losses[0].item(), "last": losses[-1].item()}


def train(
    work: Path,
    head: EagleHead,
    target: Qwen3MoeForCausalLM,
    streams: list[Stream],
    development: dict[str, Stream],
    plan: DrafterPlan,
    steps: int,
    processes: int,
) -> None:
    """Train `steps` steps, batches from `streams` in turn; goes on from
    work/drafter.pt where that exists."""
    shared = DrafterWork(head, target, plan)
    optim = torch.optim.AdamW(
        shared.trained(), lr=plan.peak_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True
    )
    state = load_checkpoint(work / "drafter.pt")
    step = 0
    if state is not None:
        head.load_state_dict(state["model"])
        optim.load_state_dict(state["optimizer"])
        step = state["step"]
    workers = Workers(shared, processes)
    watch = Stopwatch(state["elapsed_s"] if state else 0.0)
    curve = Curve(work / "drafter_curve.csv")
    saved_s = watch.elapsed_s
    report_every = max(1, steps // REPORTS)
    while step < steps:
        rate = learning_rate(plan.peak_rate, step, plan.warmup_steps, step / steps)
        values = workers.gradients(*batch(streams, step, plan))
        update(optim, workers.parameters, rate, clip=0.5)
        step += 1
        if step % report_every == 0 or step == 1:
            report(head, target, development, curve, plan, step, values, watch.elapsed_s)
        if watch.elapsed_s - saved_s > CHECKPOINT_EVERY_S or step == steps:
            saved_s = watch.elapsed_s
            saved = {"model": head.state_dict(), "optimizer": optim.state_dict()}
            state = {**saved, "step": step, "elapsed_s": saved_s}
            save_checkpoint(work / "drafter.pt", state)
    workers.close()
    report(head, target, development, curve, plan, step, values, watch.elapsed_s)


def batch(streams: list[Stream], step: int, plan: DrafterPlan) -> tuple[Tensor, Tensor]:
    """ids and assistant marks [B, L + 1] of one step; steps alternate between the streams."""
    stream = streams[step % len(streams)]
    return stream.batch(step // len(streams), plan.tokens_per_step)


@torch.no_grad()
def agreement(
    head: EagleHead, target: Qwen3MoeForCausalLM, stream: Stream, documents: int, steps: int
) -> list[float]:
    """Per step ahead: share of answer positions where head and target have the same top token.

    A training statistic on given text: no tree, no verification.
    """
    agreed = torch.zeros(steps)
    counted = torch.zeros(steps)
    for index in range(documents):
        ids, assistant = stream.document(index)
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
    values: dict[str, float],
    elapsed_s: float,
) -> None:
    row: dict[str, object] = {"step": step, "elapsed_s": round(elapsed_s)}
    row |= {name: f"{value:.4f}" for name, value in values.items()}
    for name, stream in development.items():
        values = agreement(head, target, stream, 16, plan.steps_ahead)
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
