"""The embedded target: a small Qwen3-MoE with the real model's routing shape, and its training."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from embedded import experts, routing
from embedded import tokenizer as tok
from embedded.evaluate import Evaluation, evaluate
from embedded.muon import Muon
from embedded.progress import Curve, Stopwatch, learning_rate, load_checkpoint, save_checkpoint
from embedded.stream import Stream
from embedded.workers import Workers
from torch import Tensor, nn
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

CHECKPOINT_EVERY_S = 120
REPORTS = 30  # over a run; the routing losses are steered at each


@dataclass(frozen=True)
class TargetPlan:
    """Coefficients of one training run; every change of a default goes to docs/log.md."""

    peak_rate: float = 3e-3
    muon_peak_rate: float = 2e-2
    warmup_steps: int = 60
    weight_decay: float = 0.05
    tokens_per_step: int = 4096
    reuse: float = 2e-1  # of the experts of the tokens just before
    balance: float = 1.2e-1  # per layer; to start with, then steered
    novelty: float = 1.5  # experts that a cache of 48 slots would have to load; as balance
    prompt_weight: float = 0.1  # of a prompt's token in the loss; an answer's counts 1
    # At this fraction of the budget the unembedding gets so much of the embedding added.
    align_at: float = 0.5
    align_by: float = 0.1


def target_config(end_ids: list[int], pad_id: int) -> Qwen3MoeConfig:
    return Qwen3MoeConfig(
        vocab_size=tok.VOCABULARY,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=32,
        num_experts=128,
        num_experts_per_tok=8,
        norm_topk_prob=True,
        moe_intermediate_size=32,
        decoder_sparse_step=1,
        mlp_only_layers=[],
        max_position_embeddings=8192,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        tie_word_embeddings=False,
        router_aux_loss_coef=0.001,
        output_router_logits=False,
        eos_token_id=end_ids,
        pad_token_id=pad_id,
        bos_token_id=None,
    )


def new_target(seed: int, end_ids: list[int], pad_id: int) -> Qwen3MoeForCausalLM:
    """Fresh weights. Projections that write to the residual start smaller, by depth."""
    torch.manual_seed(seed)
    config = target_config(end_ids, pad_id)
    model = Qwen3MoeForCausalLM(config)
    experts.use(model)
    with torch.no_grad():
        for layer in model.model.layers:
            wide = config.hidden_size**-0.5
            for name in ("q_proj", "k_proj", "v_proj"):
                nn.init.normal_(getattr(layer.self_attn, name).weight, std=wide)
            nn.init.normal_(layer.mlp.experts.gate_up_proj, std=wide)
            depth = (2 * config.num_hidden_layers) ** -0.5
            nn.init.normal_(layer.self_attn.o_proj.weight, std=depth * 256**-0.5)
            nn.init.normal_(layer.mlp.experts.down_proj, std=depth * 32**-0.5)
            nn.init.normal_(layer.mlp.gate.weight, std=0.5 * wide)
        nn.init.normal_(model.model.embed_tokens.weight, std=0.5)
        model.lm_head.weight.copy_(0.04 * model.model.embed_tokens.weight)
    return model


class RouterTap:
    """Keeps each layer's router logits [N, E] and chosen experts [N, K] of the last forward."""

    def __init__(self, model: Qwen3MoeForCausalLM) -> None:
        self.logits: list[Tensor] = []
        self.chosen: list[Tensor] = []
        model.register_forward_pre_hook(lambda *_: self.clear())
        for layer in model.model.layers:
            layer.mlp.gate.register_forward_hook(self._keep)

    def clear(self) -> None:
        self.logits, self.chosen = [], []

    def _keep(self, _module: nn.Module, _inputs: object, output: tuple[Tensor, ...]) -> None:
        self.logits.append(output[0])
        self.chosen.append(output[2])


class RoutingLosses:
    """(balance, reuse, novelty), each a mean over layers of a *per-layer* term.

    Balance: sum_e load_e^2 * mean probability_e, 1 when even; the load is in fair shares, squared
    so that an expert chosen by nearly every token is pushed hardest, and a running mean over about
    20 batches: all text together is balanced while one document may keep to its experts.
    transformers' own loss pools the layers before multiplying, which lets single layers collapse
    unseen.
    Reuse: how far the experts chosen LAGS tokens before fall short of this token's top 8, as
    softplus(8th highest router logit - their logit): it asks for membership, not for mass. Experts
    above FREE_LOAD fair shares count less: reusing what everyone uses is collapse, not locality.
    Novelty: how far a chosen expert that the last WINDOW tokens of the text did not use lies above
    the best one that they did use and that was not chosen: what it takes to choose that instead.
    """

    WINDOW = 24

    FREE_LOAD = 2.0

    LAGS = (1, 2, 4, 8, 16)
    DECAY = 0.95

    def __init__(self) -> None:
        self._loads: list[Tensor] = []  # per layer [E], in fair shares

    def __call__(self, tap: RouterTap, rows: int) -> tuple[Tensor, Tensor, Tensor]:
        """rows: how many texts the tapped forward held."""
        pairs = list(zip(tap.logits, tap.chosen, strict=True))
        if not self._loads:
            self._loads = [self._load(c, x.shape[-1]) for x, c in pairs]
        balance, reuse, novelty = [], [], []
        for layer, (logits, chosen) in enumerate(pairs):
            probs = logits.float().softmax(-1)  # [N, E]
            now = self._load(chosen, probs.shape[-1])
            self._loads[layer] = load = self.DECAY * self._loads[layer] + (1 - self.DECAY) * now
            balance.append((load.square() * probs.mean(0)).sum())
            weight = 1 / (load / self.FREE_LOAD).clamp(min=1)
            texts = [x.unflatten(0, (rows, -1)) for x in (logits, chosen)]
            reuse.append(self._shortfall(*texts, weight))
            novelty.append(self._novelty(*texts))
        return tuple(torch.stack(terms).mean() for terms in (balance, reuse, novelty))

    @staticmethod
    def _load(chosen: Tensor, experts: int) -> Tensor:
        return torch.bincount(chosen.flatten(), minlength=experts) * experts / chosen.numel()

    def _novelty(self, logits: Tensor, chosen: Tensor) -> Tensor:
        """logits [R, T, E], chosen [R, T, K]."""
        rows, tokens, experts = logits.shape
        now = torch.zeros(rows, tokens, experts, dtype=torch.bool)
        now.scatter_(-1, chosen, True)
        at = torch.arange(1, tokens + 1)[None, :, None]
        last = torch.where(now, at, 0).cummax(1).values.roll(1, 1)  # before this token
        last[:, 0] = 0
        recent = (last > 0) & (at - last <= self.WINDOW)
        spare = logits.masked_fill(~recent | now, float("-inf")).amax(-1, keepdim=True)
        novel = ~recent.gather(-1, chosen) & spare.isfinite()
        gap = logits.gather(-1, chosen) - spare.masked_fill(spare.isinf(), 0.0)
        return (F.softplus(gap) * novel).mean()

    def _shortfall(self, logits: Tensor, chosen: Tensor, weight: Tensor) -> Tensor:
        """logits [R, T, E], chosen [R, T, K] in falling order of logit, weight [E]."""
        bar = logits.gather(-1, chosen[..., -1:])  # [R, T, 1]
        terms = []
        for lag in self.LAGS:
            before = chosen[:, :-lag]
            gap = bar[:, lag:] - logits[:, lag:].gather(-1, before)
            terms.append((F.softplus(gap) * weight[before]).mean())
        return torch.stack(terms).mean()


def align(model: Qwen3MoeForCausalLM, by: float) -> None:
    """A head that attends to a word then speaks for it, so that copying is learned for all words
    at once, the rare names too. At the start it is undone within a few steps: the first updates of
    the unembedding are the same for all words of a kind, and larger than what tells them apart."""
    with torch.no_grad():
        model.lm_head.weight.add_(model.model.embed_tokens.weight, alpha=by)


class Steering:
    """The two coefficients that pull against each other, moved at every report until the routes of
    development text are as balanced as the limits ask and as local as the real model's."""

    def __init__(self, plan: TargetPlan, state: dict[str, float] | None) -> None:
        self.balance_weight = state["balance_weight"] if state else plan.balance
        self.novelty_weight = state["novelty_weight"] if state else plan.novelty

    def move(self, s: routing.RouteStatistics) -> None:
        uneven = s.starved.max() > 0.12 or s.effective.min() < 67 or s.busiest.max() > 10
        step = 1.35 if uneven else 0.5 if s.effective.max() > 106 else 0.9
        self.balance_weight = float(np.clip(self.balance_weight * step, 2e-2, 1.0))
        hits = {slots: s.hits[slots].mean() - real for slots, real in routing.REAL_HITS.items()}
        shared = s.distinct[8].mean()
        high = max(hits[12], hits[24]) > 0.025 or shared < 25
        step = 0.35 if shared < 23.9 else 0.8 if high else 1.2 if hits[48] < -0.03 else 1.0
        self.novelty_weight = float(np.clip(self.novelty_weight * step, 0.1, 6.0))


class Optimizers:
    """Muon for the attention's matrices, AdamW for the rest; norms and the router do not decay.

    Muon halves the tokens that copying needs (docs/log.md). The experts stay with AdamW.
    """

    def __init__(self, model: nn.Module, plan: TargetPlan) -> None:
        named = list(model.named_parameters())
        attention = [p for n, p in named if p.ndim == 2 and "self_attn" in n]
        others = [(n, p) for n, p in named if p.ndim != 2 or "self_attn" not in n]
        plain = [p for n, p in others if p.ndim < 2 or n.endswith("mlp.gate.weight")]
        decayed = [p for n, p in others if p.ndim >= 2 and not n.endswith("mlp.gate.weight")]
        groups = [
            {"params": decayed, "weight_decay": plan.weight_decay},
            {"params": plain, "weight_decay": 0.0},
        ]
        self._peaks = (plan.muon_peak_rate, plan.peak_rate)
        self._both: tuple[torch.optim.Optimizer, ...] = (
            Muon(attention, lr=plan.muon_peak_rate, weight_decay=plan.weight_decay),
            torch.optim.AdamW(groups, lr=plan.peak_rate, betas=(0.9, 0.95), fused=True),
        )

    def step(self, parameters: list[nn.Parameter], share: float) -> None:
        """One step at this share of the peak rates, gradients clipped to norm 1."""
        nn.utils.clip_grad_norm_(parameters, 1.0)
        for optim, peak in zip(self._both, self._peaks, strict=True):
            for group in optim.param_groups:
                group["lr"] = peak * share
            optim.step()
            optim.zero_grad(set_to_none=True)

    def state_dict(self) -> list[dict[str, Any]]:
        return [optim.state_dict() for optim in self._both]

    def load_state_dict(self, states: list[dict[str, Any]]) -> None:
        for optim, state in zip(self._both, states, strict=True):
            optim.load_state_dict(state)


def train(
    work: Path,
    model: Qwen3MoeForCausalLM,
    stream: Stream,
    development: dict[str, Stream],
    plan: TargetPlan,
    steps: int,
    processes: int,
) -> None:
    """Train `steps` steps; goes on from work/target.pt where that exists."""
    optim = Optimizers(model, plan)
    state = load_checkpoint(work / "target.pt")
    step = tokens = 0
    is_aligned = False
    if state is not None:
        model.load_state_dict(state["model"])
        optim.load_state_dict(state["optimizer"])
        step, tokens, is_aligned = state["step"], state["tokens"], state.get("is_aligned", False)
    steering = Steering(plan, state["steering"] if state else None)
    workers = Workers(TargetWork(model, plan), processes)
    watch = Stopwatch(state["elapsed_s"] if state else 0.0)
    curve = Curve(work / "target_curve.csv")
    saved_s = watch.elapsed_s
    report_every = max(1, steps // REPORTS)
    while step < steps:
        if step >= plan.align_at * steps and not is_aligned:
            align(model, plan.align_by)
            is_aligned = True
        rate = learning_rate(1.0, step, plan.warmup_steps, step / steps)
        ids, assistant = stream.batch(step, plan.tokens_per_step)
        losses = workers.gradients(
            ids, assistant, (steering.balance_weight, steering.novelty_weight)
        )
        optim.step(workers.parameters, rate)
        step, tokens = step + 1, tokens + ids[:, 1:].numel()
        if step % report_every == 0 or step == 1:
            shown = losses | vars(steering)
            statistics = report(
                model, development, curve, shown, step, tokens, rate, watch.elapsed_s
            )
            if step > 1:
                steering.move(statistics)
        if watch.elapsed_s - saved_s > CHECKPOINT_EVERY_S or step == steps:
            saved_s = watch.elapsed_s
            saved = {"model": model.state_dict(), "optimizer": optim.state_dict()}
            counts = {"step": step, "tokens": tokens, "elapsed_s": saved_s}
            counts["is_aligned"] = is_aligned
            save_checkpoint(work / "target.pt", {**saved, **counts, "steering": vars(steering)})
    workers.close()
    losses |= vars(steering)
    report(model, development, curve, losses, step, tokens, rate, watch.elapsed_s)


class TargetWork:
    """Forward and backward on ids [B, L + 1]; tokens of answers weigh most."""

    def __init__(self, model: Qwen3MoeForCausalLM, plan: TargetPlan) -> None:
        self.model, self.plan = model, plan
        self.tap: RouterTap | None = None  # made in the process that runs: hooks do not pickle
        self.routing_losses = RoutingLosses()

    def trained(self) -> list[nn.Parameter]:
        return list(self.model.parameters())

    def __call__(
        self, ids: Tensor, assistant: Tensor, coefficients: tuple[float, float]
    ) -> dict[str, float]:
        """coefficients: of balance and of novelty."""
        self.tap = self.tap or RouterTap(self.model)
        logits = self.model(input_ids=ids[:, :-1], use_cache=False).logits
        each = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
        weight = torch.where(assistant[:, 1:].flatten(), 1.0, self.plan.prompt_weight)
        loss = (each * weight).sum() / weight.sum()
        balance, reuse, novelty = self.routing_losses(self.tap, ids.shape[0])
        steered = coefficients[0] * balance + coefficients[1] * novelty
        local = min(1.0, coefficients[1] / self.plan.novelty)  # both ask for locality
        routing_loss = local * self.plan.reuse * reuse + steered
        (loss + routing_loss).backward()
        terms = {"loss": loss, "balance": balance, "reuse": reuse, "novelty": novelty}
        return {name: term.item() for name, term in terms.items()}


def report(
    model: Qwen3MoeForCausalLM,
    development: dict[str, Stream],
    curve: Curve,
    losses: dict[str, float],
    step: int,
    tokens: int,
    rate: float,
    elapsed_s: float,
) -> routing.RouteStatistics:
    """One row of the curve and one printed line, from development text."""
    results = {name: evaluate(model, stream, documents=32) for name, stream in development.items()}
    row = {"step": step, "elapsed_s": round(elapsed_s), "tokens": tokens, "rate": f"{rate:.2e}"}
    row |= {name: f"{value:.4f}" for name, value in losses.items()}
    statistics = routing.route_statistics([t for r in results.values() for t in r.routes])
    row |= curve_values(results, statistics)
    curve.add(row)
    row["effective"] = " ".join(f"{v:.0f}" for v in statistics.effective)
    print(time.strftime("%H:%M:%S"), " ".join(f"{k}={v}" for k, v in row.items()), flush=True)
    return statistics


def curve_values(results: dict[str, Evaluation], s: routing.RouteStatistics) -> dict[str, str]:
    """Development losses and pooled routing statistics, as CSV fields."""
    values = {f"{name}_answer_loss": f"{r.answer_loss:.4f}" for name, r in results.items()}
    values |= {f"{name}_loss": f"{r.loss:.4f}" for name, r in results.items()}
    values |= {
        "effective_min": f"{s.effective.min():.1f}",
        "effective_max": f"{s.effective.max():.1f}",
        "starved_max": f"{s.starved.max():.3f}",
        "busiest_max": f"{s.busiest.max():.1f}",
    }
    values |= {f"distinct_{n}": f"{v.mean():.2f}" for n, v in s.distinct.items() if n > 1}
    return values | {f"hits_{n}": f"{v.mean():.3f}" for n, v in s.hits.items()}


def save(model: Qwen3MoeForCausalLM, folder: Path) -> None:
    """A hub checkpoint: bf16, per-expert names, two shards and their index."""
    folder.mkdir(parents=True, exist_ok=True)
    rounded = Qwen3MoeForCausalLM(model.config).to(torch.bfloat16)
    rounded.load_state_dict(model.state_dict())
    generation = folder / "generation_config.json"
    kept = generation.read_text() if generation.exists() else None
    rounded.save_pretrained(folder, max_shard_size="16MB")
    if kept is not None:
        generation.write_text(kept)  # save_pretrained writes one of its own
    shards = sorted(os.path.basename(p) for p in folder.glob("*.safetensors"))
    assert len(shards) == 2, f"expected two shards, wrote {shards}"


def load(folder: Path) -> Qwen3MoeForCausalLM:
    """The stored weights, run in fp32: what the drafter is trained against."""
    model = Qwen3MoeForCausalLM.from_pretrained(folder, dtype=torch.float32)
    experts.use(model)
    return model.eval().requires_grad_(False)
