"""Answers of the trained target to training prompts: half of what the drafter learns from."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
import torch.multiprocessing as mp
from embedded import mix
from embedded import tokenizer as tok
from embedded.stream import END, Stream
from tokenizers import Tokenizer
from torch import Tensor
from transformers import Qwen3MoeForCausalLM

BATCH = 96
# Longest greedy answer per source, tokens; what is longer is cut.
LONGEST = {"word_problems": 200, "news": 100, "gsm8k": 240}


def load_or_generate(
    folder: Path,
    target: Qwen3MoeForCausalLM,
    tokenizer: Tokenizer,
    gsm8k: mix.Gsm8k | None,
    documents: int,
    processes: int,
) -> Stream:
    """Greedy answers to `documents` training prompts of every source, as a shuffled stream."""
    path = folder / "train-generated.npz"
    if not path.exists():
        pieces = generate_all(target, tokenizer, gsm8k, documents, processes)
        order = np.random.default_rng(1).permutation(len(pieces))
        ids = np.concatenate([np.asarray(pieces[i][0], dtype=np.uint16) for i in order])
        marks = np.concatenate([_marks(pieces[i]) for i in order])
        part = path.with_suffix(".part.npz")
        np.savez(part, tokens=ids, assistant=marks)
        os.replace(part, path)
    with np.load(path) as stored:
        return Stream(stored["tokens"], stored["assistant"])


def _marks(piece: tuple[list[int], int]) -> np.ndarray:
    marks = np.zeros(len(piece[0]), dtype=bool)
    marks[piece[1] : -1] = True
    return marks


def generate_all(
    target: Qwen3MoeForCausalLM,
    tokenizer: Tokenizer,
    gsm8k: mix.Gsm8k | None,
    documents: int,
    processes: int,
) -> list[tuple[list[int], int]]:
    """(prompt + answer ids, prompt length) of every document."""
    batches: list[tuple[list[list[int]], int]] = []
    for source in mix.sources(gsm8k):
        users = (mix.source_document(source, "train", i, gsm8k).user for i in range(documents))
        prompts = [e.ids for e in tokenizer.encode_batch([tok.prompt_text(u) for u in users])]
        prompts.sort(key=len)  # little padding
        batches += [
            (prompts[i : i + BATCH], LONGEST[source]) for i in range(0, len(prompts), BATCH)
        ]
    ends = [tokenizer.token_to_id(tok.TURN_END), tokenizer.token_to_id(tok.END_OF_TEXT)]
    context = mp.get_context("spawn")
    with context.Pool(processes, _start, (target, ends)) as pool:
        return [piece for pieces in pool.imap(_answers, batches) for piece in pieces]


_model: Qwen3MoeForCausalLM
_ends: list[int]


def _start(model: Qwen3MoeForCausalLM, ends: list[int]) -> None:
    global _model, _ends
    torch.set_num_threads(1)
    _model, _ends = model, ends


def _answers(batch: tuple[list[list[int]], int]) -> list[tuple[list[int], int]]:
    prompts, longest = batch
    width = max(len(p) for p in prompts)
    ids = torch.full((len(prompts), width), _ends[-1])
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)  # padded on the left
    mask = (torch.arange(width) >= width - torch.tensor([[len(p)] for p in prompts])).long()
    out = _model.generate(
        input_ids=ids,
        attention_mask=mask,
        do_sample=False,
        max_new_tokens=longest,
        eos_token_id=_ends,
        pad_token_id=_ends[-1],
    )
    return [_cut(prompt, row[width:]) for prompt, row in zip(prompts, out, strict=True)]


def _cut(prompt: list[int], answer: Tensor) -> tuple[list[int], int]:
    """Keep the answer up to its first stop token, and close the document."""
    ids = answer.tolist()
    stops = [i for i, token in enumerate(ids) if token in _ends]
    return [*prompt, *(ids[: stops[0] + 1] if stops else ids), END], len(prompt)
