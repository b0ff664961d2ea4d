"""EAGLE-3's training-time test: the head unrolled on its own features over given text.

Letters: B texts, L tokens, T = L - 1 rows, S unrolled steps, H hidden, DV draft vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from specfit.models.drafter.head import EagleHead


@dataclass(frozen=True)
class TttBatch:
    """Texts and what one target pass says about them. Index = position in the text.

    tokens int64 [B, L]; aux [B, L, 3H] (low|mid|high); target_logits [B, L, V], at position t of
    the token after t; scored [B, L], bool or weights: how much this token, when predicted, counts
    in the loss.
    """

    tokens: Tensor
    aux: Tensor
    target_logits: Tensor
    scored: Tensor


@dataclass(frozen=True)
class TttResult:
    """One entry per step. losses: weighted mean of the soft cross-entropy, in nats.

    agreed, of counted rows (weight above 0): head and target put the same token first. A target
    choice outside the draft vocabulary is a disagreement here, though it carries no loss.
    """

    losses: list[Tensor]
    agreed: list[int]
    counted: list[int]


def ttt_losses(head: EagleHead, batch: TttBatch, steps: int) -> TttResult:
    """Losses of `steps` unrolled steps; the caller weighs and sums them."""
    targets = DraftTargets.of(head, batch)
    losses, agreed, counted = [], [], []
    for step, logits in enumerate(unroll(head, batch.tokens, batch.aux, steps)):
        # Row t at this step predicts token t + 2 + step: the target's logits at t + 1 + step, and
        # the mask at the predicted token itself.
        probs = targets.probs[:, 1 + step : -1]  # [B, rows, DV]
        scored = batch.scored[:, 2 + step :]
        reachable = targets.reachable[:, 1 + step : -1]
        rows = logits[:, : probs.shape[1]]
        entropy = -(probs * rows.log_softmax(-1)).sum(-1)
        weight = scored.to(entropy.dtype) * reachable
        losses.append((entropy * weight).sum() / weight.sum().clamp(min=1e-6))
        same = rows.detach().argmax(-1) == targets.best[:, 1 + step : -1]
        agreed.append(int((same & reachable & (scored > 0)).sum()))
        counted.append(int((scored > 0).sum()))
    return TttResult(losses, agreed, counted)


@dataclass(frozen=True)
class DraftTargets:
    """The target's distribution over the draft vocabulary, in draft order.

    probs [B, L, DV]; best int64 [B, L], its first draft id; reachable bool [B, L]: the target's
    own first choice is in the draft vocabulary.
    """

    probs: Tensor
    best: Tensor
    reachable: Tensor

    @classmethod
    def of(cls, head: EagleHead, batch: TttBatch) -> DraftTargets:
        ids = head.t2d.nonzero().flatten()  # ascending, hence draft order
        restricted = batch.target_logits.index_select(-1, ids).float()
        reachable = head.t2d[batch.target_logits.argmax(-1)]
        return cls(restricted.softmax(-1), restricted.argmax(-1), reachable)


def unroll(head: EagleHead, tokens: Tensor, aux: Tensor, steps: int) -> list[Tensor]:
    """Logits [B, T, DV] of every step, on given tokens [B, L] and aux [B, L, 3H].

    Step 0: row t = (token t + 1, fused feature t). Step i: row t = (token t + 1 + i, the head's
    output of row t at step i - 1), position t + i. Tokens past the end wrap around; those rows
    predict nothing that exists and the caller drops them.
    """
    rows = tokens.shape[1] - 1
    positions = torch.arange(rows, device=tokens.device)
    features = head.fuse(aux[:, :-1])
    attention = UnrolledAttention(head, rows)
    every = []
    for step in range(steps):
        embeddings = head.embed_tokens(tokens.roll(-1 - step, dims=1)[:, :-1])
        z, residual = head.layer.enter(embeddings, features)
        mixed = attention.step(z, positions + step)
        features, logits = head.read_out(head.layer.leave(residual, mixed))
        every.append(logits)
    return every


class UnrolledAttention:
    """Step i, row t attends to the step-0 keys 0..t and to its own row's keys of steps 1..i:
    the true-feature entries and the drafted ancestors that the inference cache holds there."""

    def __init__(self, head: EagleHead, rows: int) -> None:
        self.attention = head.layer.self_attn
        self.window = head.config.sliding_window
        index = torch.arange(rows, device=head.fc.weight.device)
        self.age = index[:, None] - index[None, :]  # [T, T]
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []

    def step(self, z: Tensor, positions: Tensor) -> Tensor:
        """z [B, T, 2H] -> [B, A, T, D]."""
        q, k, v = self.attention.project(z, positions)
        self.keys.append(self.attention.widen(k))
        self.values.append(self.attention.widen(v))
        return self._attend(q * q.shape[-1] ** -0.5)

    def _attend(self, q: Tensor) -> Tensor:
        step = len(self.keys) - 1
        visible = self.age >= 0
        if self.window is not None:
            visible = visible & (self.age + step < self.window)
        causal = (q @ self.keys[0].transpose(-1, -2)).masked_fill(~visible, float("-inf"))
        own = [(q * keys).sum(-1, keepdim=True) for keys in self.keys[1:]]
        weights = torch.cat([causal, *own], dim=-1).float().softmax(-1).to(q.dtype)
        rows = causal.shape[-1]
        mixed = weights[..., :rows] @ self.values[0]
        for index, values in enumerate(self.values[1:]):
            mixed = mixed + weights[..., rows + index, None] * values
        return mixed
