"""Loss and routes of the target on held-out text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from embedded.stream import Stream
from torch import Tensor, nn
from transformers import Qwen3MoeForCausalLM


@dataclass(frozen=True)
class Evaluation:
    """loss, answer_loss: mean nats a token, over everything and over answers only."""

    loss: float
    answer_loss: float
    routes: list[np.ndarray]  # uint8 [T, L, K] of each document


@torch.no_grad()
def evaluate(model: Qwen3MoeForCausalLM, stream: Stream, documents: int) -> Evaluation:
    """Run the first documents of `stream`, each alone, as a request is."""
    routes, losses, answers = [], [], []
    training = model.training
    model.eval()
    for index in range(documents):
        ids, assistant = stream.document(index)
        logits, chosen = logits_and_routes(model, ids[:, :-1])
        loss = F.cross_entropy(logits, ids[0, 1:], reduction="none")
        losses.append(loss)
        answers.append(loss[assistant[0, 1:]])
        routes.append(torch.stack(chosen, dim=1).to(torch.uint8).numpy())
    model.train(training)
    return Evaluation(torch.cat(losses).mean().item(), torch.cat(answers).mean().item(), routes)


def logits_and_routes(model: Qwen3MoeForCausalLM, ids: Tensor) -> tuple[Tensor, list[Tensor]]:
    """ids [1, T] -> logits [T, V] and each layer's chosen experts [T, K]."""
    chosen: list[Tensor] = []

    def keep(_module: nn.Module, _inputs: object, output: tuple[Tensor, ...]) -> None:
        chosen.append(output[2])

    hooks = [layer.mlp.gate.register_forward_hook(keep) for layer in model.model.layers]
    logits = model(input_ids=ids, use_cache=False).logits[0]
    for hook in hooks:
        hook.remove()
    return logits, chosen
