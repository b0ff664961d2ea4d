"""From an example to token ids: template, the workload's own limit, chat template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from specfit.base.types import Request, RequestError
from specfit.data.examples import Example


@dataclass(frozen=True)
class Prompting:
    """How one workload asks. A limit cuts the document, never the instruction around it."""

    tokenizer: Any
    document: str
    reference: str | None
    template: str
    max_document_tokens: int | None
    max_new_tokens: int
    stop_ids: frozenset[int]
    context: int  # the model's
    system: str | None = None
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)  # enable_thinking and the like

    def request(self, example: Example) -> Request:
        """Raises RequestError for what is wrong with this one example."""
        messages, cut_tokens = self._messages(example.fields)
        prompt_ids = self._encode(messages)
        if len(prompt_ids) + self.max_new_tokens > self.context:
            raise RequestError(
                f"prompt of {len(prompt_ids)} tokens and {self.max_new_tokens} new ones exceed "
                f"the model's context of {self.context}"
            )
        return Request(
            example.example_id,
            prompt_ids,
            self.max_new_tokens,
            self.stop_ids,
            self.reference_of(example),
            cut_tokens,
        )

    def reference_of(self, example: Example) -> str | None:
        """None where the field holds no text; that stops no decoding, which needs none."""
        reference = example.fields.get(self.reference) if self.reference else None
        return reference if isinstance(reference, str) and _is_unicode(reference) else None

    def _messages(self, fields: Mapping[str, Any]) -> tuple[list[dict[str, str]], int]:
        if "messages" in fields:
            return _checked_messages(fields["messages"]), 0
        document = fields[self.document]
        if not isinstance(document, str) or not document.strip():
            raise RequestError(f"the field {self.document!r} is empty or not a text")
        if not _is_unicode(document):
            raise RequestError(f"the field {self.document!r} is not valid Unicode text")
        document, cut_tokens = self._cut(document)
        # not str.format: a document may hold braces
        content = self.template.replace("{document}", document)
        turns = [("system", self.system), ("user", content)]
        return [{"role": role, "content": text} for role, text in turns if text], cut_tokens

    def _cut(self, document: str) -> tuple[str, int]:
        """The first `max_document_tokens` tokens' text, and how many were cut off."""
        if self.max_document_tokens is None:
            return document, 0
        encoded = self.tokenizer(
            document, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        offsets = encoded["offset_mapping"]
        if len(offsets) <= self.max_document_tokens:
            return document, 0
        end = offsets[self.max_document_tokens - 1][1]
        return document[:end], len(offsets) - self.max_document_tokens

    def _encode(self, messages: list[dict[str, str]]) -> np.ndarray:
        try:
            text = self.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **self.template_kwargs
            )
        except Exception as error:  # templates are programs and fail in their own ways
            raise RequestError(f"the chat template refuses these messages ({error})") from None
        if not isinstance(text, str) or not text.strip():
            raise RequestError("the chat template renders these messages as nothing")
        ids = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return np.asarray(ids, dtype=np.int64)


def _checked_messages(messages: Any) -> list[dict[str, str]]:
    if not isinstance(messages, list) or not messages or not all(map(_is_message, messages)):
        raise RequestError("messages must be a non-empty list of {role, content} texts")
    return messages


def _is_message(message: Any) -> bool:
    texts = [message.get(key) for key in ("role", "content")] if isinstance(message, dict) else []
    return bool(texts) and all(isinstance(text, str) and _is_unicode(text) for text in texts)


def _is_unicode(text: str) -> bool:
    """JSON may hold half a surrogate pair, which no tokenizer takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
