"""Greedy answers to many training prompts at once, by plain transformers.

Batches are padded on the left, so a near-tie may fall otherwise than in a run of one request: the
recorder counts such tokens. For training text that is of no matter; evaluated rows never come from
here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from specfit.base.types import Request

BATCH = 48


def greedy_answers(folder: Path, requests: Sequence[Request]) -> dict[str, list[int]]:
    """Request -> the ids that the checkpoint in `folder` says to it, the stop token included."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    by_length = sorted(requests, key=lambda request: len(request.prompt_ids))  # little padding
    found: dict[str, list[int]] = {}
    for start in range(0, len(by_length), BATCH):
        found |= _batch(model, by_length[start : start + BATCH])
    return found


@torch.inference_mode()
def _batch(model: PreTrainedModel, requests: Sequence[Request]) -> dict[str, list[int]]:
    width = max(len(request.prompt_ids) for request in requests)
    stops = sorted(requests[0].stop_ids)
    ids = torch.full((len(requests), width), stops[0])
    mask = torch.zeros(len(requests), width, dtype=torch.long)
    for row, request in enumerate(requests):
        ids[row, width - len(request.prompt_ids) :] = torch.from_numpy(request.prompt_ids)
        mask[row, width - len(request.prompt_ids) :] = 1
    out = model.generate(
        ids,
        attention_mask=mask,
        do_sample=False,
        max_new_tokens=requests[0].max_new_tokens,
        eos_token_id=stops,
        pad_token_id=stops[0],
    )
    answers = out[:, width:].tolist()
    return {
        request.request_id: _until_stop(answer, request.stop_ids)
        for request, answer in zip(requests, answers, strict=True)
    }


def _until_stop(answer: list[int], stop_ids: frozenset[int]) -> list[int]:
    end = next((i + 1 for i, token in enumerate(answer) if token in stop_ids), len(answer))
    return answer[:end]
