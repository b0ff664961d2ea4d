"""Documents as one long token stream on disk, and batches as slices of it.

Position in the stream is all the state a batch needs, so training resumes exactly.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from embedded import mix
from embedded import tokenizer as tok
from tokenizers import Tokenizer

END = tok.SPECIAL.index(tok.END_OF_TEXT)  # the id of the token after each document
ENCODE_BATCH = 256  # documents per call of the tokenizer


@dataclass(frozen=True)
class Stream:
    """tokens uint16 [N]; assistant bool [N]: the token is part of an answer."""

    tokens: np.ndarray
    assistant: np.ndarray

    def __len__(self) -> int:
        return len(self.tokens)

    def rows(self, start: int, count: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """`count` rows of `length` + 1 tokens, each from the first document start at or after
        position `start` + row * `length`, wrapping. Rows begin as prompts do at run time.
        Returns ids int64 and assistant bool [B, L + 1]."""
        nominal = (start + length * np.arange(count)) % len(self)
        begins = self.starts[np.searchsorted(self.starts, nominal) % len(self.starts)]
        index = (begins[:, None] + np.arange(length + 1)[None, :]) % len(self)
        ids = torch.from_numpy(self.tokens[index].astype(np.int64))
        return ids, torch.from_numpy(self.assistant[index])

    @cached_property
    def starts(self) -> np.ndarray:
        """Positions at which a document begins, ascending, int64."""
        return np.concatenate([[0], 1 + np.flatnonzero(self.tokens[:-1] == END)])


def encode(documents: list[mix.Document], tokenizer: Tokenizer) -> list[tuple[list[int], int]]:
    """Token ids of each document and the length of its prompt.

    Prompt and answer are encoded apart, exactly as at run time.
    """
    prompts = tokenizer.encode_batch([tok.prompt_text(d.user) for d in documents])
    answers = tokenizer.encode_batch([tok.answer_text(d.assistant) for d in documents])
    return [(p.ids + a.ids, len(p.ids)) for p, a in zip(prompts, answers, strict=True)]


def build(
    split: str, tokens: int, only: str | None, gsm8k: mix.Gsm8k | None, tokenizer: Tokenizer
) -> Stream:
    """About `tokens` tokens of one split, one source or the mix, in a fixed shuffled order."""
    names = (only,) if only else mix.sources(gsm8k)
    total = sum(mix.TOKEN_SHARES[name] for name in names)
    pieces: list[tuple[list[int], int]] = []
    for name in names:
        wanted, got, index = tokens * mix.TOKEN_SHARES[name] / total, 0, 0
        while got < wanted:
            batch = range(index, index + ENCODE_BATCH)
            documents = [mix.source_document(name, split, i, gsm8k) for i in batch]
            index += ENCODE_BATCH
            for piece in encode(documents, tokenizer):
                if got < wanted:
                    pieces.append(piece)
                    got += len(piece[0])
    order = np.random.default_rng(0).permutation(len(pieces))
    ids = np.concatenate([np.asarray(pieces[i][0], dtype=np.uint16) for i in order])
    assistant = np.concatenate([_answer_mask(pieces[i]) for i in order])
    return Stream(ids, assistant)


def _answer_mask(piece: tuple[list[int], int]) -> np.ndarray:
    """True on the answer up to and including the end of the turn, not on the separator after it."""
    ids, prompt = piece
    mask = np.zeros(len(ids), dtype=bool)
    mask[prompt : len(ids) - 2] = True
    return mask


def load_or_build(
    folder: Path,
    split: str,
    tokens: int,
    only: str | None,
    gsm8k: mix.Gsm8k | None,
    tokenizer: Tokenizer,
) -> Stream:
    path = folder / f"{split}-{only or 'mix'}.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        stream = build(split, tokens, only, gsm8k, tokenizer)
        part = path.with_suffix(".part.npz")
        np.savez(part, tokens=stream.tokens, assistant=stream.assistant)
        os.replace(part, path)
    with np.load(path) as stored:
        return Stream(stored["tokens"], stored["assistant"])
