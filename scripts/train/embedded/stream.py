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
POOL = 1024  # documents from which batches of like lengths are made
ENCODE_BATCH = 256  # documents per call of the tokenizer


@dataclass(frozen=True)
class Stream:
    """tokens uint16 [N]; assistant bool [N]: the token is part of an answer."""

    tokens: np.ndarray
    assistant: np.ndarray

    def __len__(self) -> int:
        return len(self.tokens)

    def document(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """ids int64 and assistant bool [1, T] of one document, its separator included."""
        index %= len(self.starts)
        end = self.starts[index] + self.lengths[index]
        return self._slices(self.starts[index : index + 1], int(end - self.starts[index]))

    def batch(self, number: int, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Batch `number` (they wrap) of about `tokens` tokens: ids int64 and assistant bool
        [B, L + 1]. Every row begins with a document, as at run time, and holds all of it; what is
        left of a row is the beginning of the next, so nothing is padded."""
        plan = self._batches(tokens)
        documents = plan[number % len(plan)]
        return self._slices(self.starts[documents], int(self.lengths[documents].max()))

    def _batches(self, tokens: int) -> list[np.ndarray]:
        """Documents of each batch: alike in length within a batch, any length in any order."""
        if tokens not in self._plans:
            plan: list[np.ndarray] = []
            for start in range(0, len(self.starts), POOL):
                pool = np.arange(start, min(start + POOL, len(self.starts)))
                pool = pool[np.argsort(self.lengths[pool], kind="stable")][::-1]
                batches = []
                while len(pool):
                    rows = max(2, tokens // int(self.lengths[pool[0]]) // 2 * 2)
                    batches.append(pool[:rows])
                    pool = pool[rows:]
                order = np.random.default_rng(start).permutation(len(batches))
                plan += [batches[i] for i in order if len(batches[i]) > 1]
            self._plans[tokens] = plan
        return self._plans[tokens]

    def _slices(self, starts: np.ndarray, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        index = (starts[:, None] + np.arange(length + 1)[None, :]) % len(self)
        ids = torch.from_numpy(self.tokens[index].astype(np.int64))
        return ids, torch.from_numpy(self.assistant[index])

    @cached_property
    def lengths(self) -> np.ndarray:
        """Tokens of each document, its separator included, int64."""
        return np.diff(self.starts, append=len(self))

    @cached_property
    def _plans(self) -> dict[int, list[np.ndarray]]:
        return {}

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
