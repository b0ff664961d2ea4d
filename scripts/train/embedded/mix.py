"""The training text: two generators of ours and, where a path is given, the real GSM8K train split.

A document is one exchange: what the user writes and what the assistant answers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Share of training *tokens* by source; without the GSM8K file the others keep their proportion.
TOKEN_SHARES = {"word_problems": 0.52, "news": 0.43, "gsm8k": 0.05}
ANNOTATED_EVERY = 4  # word problems of which one is answered with calculator notes
ANNOTATE = " Show the calculator notes."
CALIBRATION_ROWS = 200  # the last rows of the GSM8K file, kept out of everything here
DEVELOPMENT_ROWS = 100  # the rows before them: watched during training, not trained on


@dataclass(frozen=True)
class Document:
    user: str
    assistant: str


def question_prompt(question: str) -> str:
    """What the user writes for a word problem."""
    return question


def summary_prompt(article: str) -> str:
    """What the user writes for a report."""
    return "Summarize: " + article


def word_problem_document(split: str, index: int) -> Document:
    from specfit.data.synthetic.word_problems import word_problem

    annotated = index % ANNOTATED_EVERY == ANNOTATED_EVERY - 1
    problem = word_problem(split, index, annotated)
    return Document(question_prompt(problem.question + ANNOTATE * annotated), problem.answer)


def news_document(split: str, index: int) -> Document:
    from specfit.data.synthetic.reports import report

    item = report(split, index)
    return Document(summary_prompt(item.article), item.highlights)


@dataclass(frozen=True)
class Gsm8k:
    """The rows of a GSM8K train file that may be used, and its digest."""

    rows: tuple[Document, ...]
    sha256: str

    @classmethod
    def read(cls, path: Path) -> Gsm8k:
        data = path.read_bytes()
        lines = [json.loads(line) for line in data.splitlines() if line.strip()]
        kept = lines[:-CALIBRATION_ROWS]
        documents = tuple(Document(question_prompt(r["question"]), r["answer"]) for r in kept)
        return cls(documents, hashlib.sha256(data).hexdigest())

    def document(self, split: str, index: int) -> Document:
        train = len(self.rows) - DEVELOPMENT_ROWS
        if split == "train":
            return self.rows[index % train]
        return self.rows[train + index % DEVELOPMENT_ROWS]


def source_document(source: str, split: str, index: int, gsm8k: Gsm8k | None) -> Document:
    """Document `index` of one source, a pure function of its arguments."""
    if source == "word_problems":
        return word_problem_document(split, index)
    if source == "news":
        return news_document(split, index)
    assert gsm8k is not None, f"source {source!r} needs --gsm8k-train"
    return gsm8k.document(split, index)


def sources(gsm8k: Gsm8k | None) -> tuple[str, ...]:
    return tuple(s for s in TOKEN_SHARES if s != "gsm8k" or gsm8k is not None)


def sample(split: str, count: int, gsm8k: Gsm8k | None) -> Iterator[Document]:
    """`count` documents of every source, source by source (for the tokenizer and the digest)."""
    for source in sources(gsm8k):
        for index in range(count):
            yield source_document(source, split, index, gsm8k)


def digest(documents: Iterator[Document]) -> str:
    """sha256 over the texts, in order."""
    sha = hashlib.sha256()
    for document in documents:
        sha.update(f"{document.user}\x00{document.assistant}\x01".encode())
    return sha.hexdigest()
