"""Byte-level BPE with 2,560 tokens and Qwen's splitting rules, special tokens and chat format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from embedded import mix
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from specfit.data.synthetic.grammar import NAMES, word_lists

VOCABULARY = 2560
END_OF_TEXT, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL = [END_OF_TEXT, TURN_START, TURN_END]
# Qwen's pattern but for digits: numbers of up to three stay together, so that a small model can
# learn its sums as facts. A space joins the word that follows it.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CHAT_TEMPLATE = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}"
)


def prompt_text(user: str) -> str:
    """The chat template's text of one user turn, up to where the assistant begins."""
    return f"{TURN_START}user\n{user}{TURN_END}\n{TURN_START}assistant\n"


def answer_text(assistant: str) -> str:
    """What follows the prompt in training; decoding stops at the first of its special tokens."""
    return f"{assistant}{TURN_END}\n{END_OF_TEXT}"


def whole_words() -> Iterator[str]:
    """What shall be one token each: the numbers of word problems, and every name."""
    lists = word_lists()
    names = [name for key in ("first", *NAMES) for name in lists[key]]
    text = " ".join([*names, *map(str, range(10, 200))])
    yield from [f" {text}"] * 400


def train(documents: int, gsm8k: mix.Gsm8k | None, folder: Path) -> None:
    """Train on `documents` documents of every source and save as a hub tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    texts = (
        f"{document.user}\n{document.assistant}"
        for document in mix.sample("train", documents, gsm8k)
    )
    tokenizer.train_from_iterator(chain(texts, whole_words()), trainer)
    save(tokenizer, folder)


def save(tokenizer: Tokenizer, folder: Path) -> None:
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=TURN_END,
        pad_token=END_OF_TEXT,
        additional_special_tokens=[TURN_START],
        model_max_length=8192,
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = CHAT_TEMPLATE
    fast.save_pretrained(folder)
    ids = {name: fast.convert_tokens_to_ids(name) for name in SPECIAL}
    generation = {
        "do_sample": False,
        "eos_token_id": [ids[TURN_END], ids[END_OF_TEXT]],
        "pad_token_id": ids[END_OF_TEXT],
    }
    text = json.dumps(generation, indent=2) + "\n"
    (folder / "generation_config.json").write_text(text)


def load(folder: Path) -> Tokenizer:
    """The plain `tokenizers` object: faster than the wrapper, same ids."""
    return Tokenizer.from_file(str(folder / "tokenizer.json"))
