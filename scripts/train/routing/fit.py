"""Training of the route predictor: binary cross-entropy per (layer, expert), rows weighted by how
often they are verified, AdamW, one cycle of the rate.

Letters: R rows, B batch, L layers, E experts, k routed experts, D depths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from routing.samples import Samples
from torch import Tensor

from specfit.models.routes.predictor import PredictorShape, RoutePredictor


@dataclass(frozen=True)
class Plan:
    width: int = 640
    passes: int = 4
    batch: int = 1024
    peak_rate: float = 3e-3
    weight_decay: float = 1e-2
    warmup: float = 0.05  # share of the steps
    looks: int = 1  # evaluations of held-out text per pass; the best look is kept


@dataclass(frozen=True, eq=False)
class Rows:
    """Samples as tensors; one-hot targets are made batch by batch."""

    samples: Samples
    embeddings: Tensor  # [V, H], the head's

    def __len__(self) -> int:
        return len(self.samples)

    def inputs(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Features, embeddings, depths and recent use of these rows."""
        at, s = rows.numpy(), self.samples
        features = torch.from_numpy(s.features[s.parent[at]]).float()
        recent = torch.from_numpy(s.uses[s.position[at]]).float()
        return features, self.embeddings[s.tokens[at]], torch.from_numpy(s.depths[at]), recent

    def targets(self, rows: Tensor, experts: int) -> Tensor:
        """[B, L, E] zeros and ones."""
        ids = torch.from_numpy(self.samples.routes[rows.numpy()]).long()
        return torch.zeros(*ids.shape[:2], experts).scatter_(-1, ids, 1.0)

    def weights(self, rows: Tensor) -> Tensor:
        """[B]"""
        return torch.from_numpy(self.samples.weights[rows.numpy()])

    def above(self, rows: Tensor) -> Tensor:
        """[B] rows of their parents; a root's is itself."""
        return torch.from_numpy(self.samples.above[rows.numpy()])

    def used_above(self, rows: Tensor, experts: int) -> Tensor:
        """[B, L, E] 1 where an ancestor uses the expert, root included; 0 for a root."""
        used = torch.zeros(len(rows), self.samples.routes.shape[1], experts)
        while True:
            parents = self.above(rows)
            inner = parents != rows
            if not bool(inner.any()):
                return used
            used[inner] = torch.maximum(used[inner], self.targets(parents[inner], experts))
            rows = parents


@dataclass(frozen=True)
class Look:
    """Held-out text at one moment of training; loss and recall of weighted rows."""

    step: int
    rows: int  # trained on so far
    loss: float  # nats per (layer, expert)
    recall: float  # of the routed experts, among as many predicted


def train(
    shape: PredictorShape,
    rows: Rows,
    held_out: Rows,
    plan: Plan,
    seed: int,
    say: Callable[[str], None],
) -> tuple[RoutePredictor, list[Look]]:
    """The weights of the look with the lowest held-out loss, and every look."""
    torch.manual_seed(seed)
    predictor = RoutePredictor(replace(shape, width=plan.width))
    steps = plan.passes * (len(rows) // plan.batch)
    optimiser = torch.optim.AdamW(
        predictor.parameters(), lr=plan.peak_rate, weight_decay=plan.weight_decay
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, plan.peak_rate, total_steps=steps, pct_start=plan.warmup
    )
    every = max(1, steps // (plan.passes * plan.looks))
    looks: list[Look] = []
    best: dict[str, Any] = {}
    order = torch.randperm(len(rows))
    for step in range(steps):
        at = step % (len(rows) // plan.batch)
        if step and at == 0:
            order = torch.randperm(len(rows))
        batch = order[at * plan.batch : (at + 1) * plan.batch]
        logits, wanted = predictor(*rows.inputs(batch)), rows.targets(batch, shape.experts)
        weights = rows.weights(batch)
        loss = (row_losses(logits, wanted) * weights).sum() / weights.sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if (step + 1) % every == 0 or step + 1 == steps:
            look = look_at(predictor, held_out, step + 1, (step + 1) * plan.batch)
            say(f"step {look.step} of {steps}: loss {look.loss:.5f}, recall {look.recall:.4f}")
            if not looks or look.loss < min(one.loss for one in looks):
                best = {name: tensor.clone() for name, tensor in predictor.state_dict().items()}
            looks.append(look)
    predictor.load_state_dict(best)
    return predictor.requires_grad_(False).eval(), looks


def row_losses(logits: Tensor, wanted: Tensor) -> Tensor:
    """[B, L, E] each -> [B], the mean over a row's (layer, expert) in nats."""
    losses = F.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    return losses.mean((1, 2))


@torch.inference_mode()
def look_at(predictor: RoutePredictor, rows: Rows, step: int, seen: int) -> Look:
    losses = hits = weight = 0.0
    for part in torch.arange(len(rows)).split(4096):
        logits, wanted = predictor(*rows.inputs(part)), rows.targets(part, predictor.shape.experts)
        weights = rows.weights(part)
        top = logits.topk(predictor.shape.top_k, dim=-1).indices
        losses += float((row_losses(logits, wanted) * weights).sum())
        hits += float((wanted.gather(-1, top).mean((1, 2)) * weights).sum())
        weight += float(weights.sum())
    return Look(step, seen, losses / weight, hits / weight)


def fit_given(predictor: RoutePredictor, rows: Rows, passes: int = 4, batch: int = 1024) -> None:
    """a, b, c of `if_new`, by the same loss over the experts that no row above a row uses.

    On text the network was not trained on, which also takes back what it is too sure of there.
    """
    shape, given = predictor.shape, predictor.given.requires_grad_(True)
    optimiser = torch.optim.Adam([given], lr=2e-2)
    for _ in range(passes):
        for part in torch.randperm(len(rows)).split(batch):
            above, depths = rows.above(part), rows.inputs(part)[2]
            with torch.no_grad():
                logits, higher = (predictor(*rows.inputs(these)) for these in (part, above))
            wanted = rows.targets(part, shape.experts)
            free = 1 - rows.used_above(part, shape.experts)
            losses = F.binary_cross_entropy_with_logits(
                predictor.if_new(logits, higher, depths), wanted, reduction="none"
            )
            weights = free * rows.weights(part)[:, None, None]
            optimiser.zero_grad()
            ((losses * weights).sum() / weights.sum()).backward()
            optimiser.step()
    given.requires_grad_(False)
