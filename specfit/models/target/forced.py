"""A target whose next tokens are a script's, for weights that say nothing (`drafter.force`).

Every forward runs, is routed, copied and timed as ever; only the argmax is not believed. What is
committed is then the script, and what is accepted is what the drafter got right of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from specfit.base.interfaces import Prefilled, Verified
from specfit.base.types import DraftTree, IntArray, Selection
from specfit.models.target.offloaded import OffloadedTarget


class ForcedTarget(OffloadedTarget):
    """`scripts`: prompt ids -> ids that follow. Other prompts are answered by the weights."""

    def __init__(self, *parts: Any, scripts: Mapping[tuple[int, ...], Sequence[int]]) -> None:
        super().__init__(*parts)
        self._scripts = scripts
        self._text: list[int] = []

    def prefill(self, prompt_ids: IntArray) -> Prefilled:
        filled = super().prefill(prompt_ids)
        prompt = tuple(int(token) for token in prompt_ids)
        script = self._scripts.get(prompt)
        self._text = [] if script is None else [*prompt, *script]
        if len(self._text) > len(prompt):
            filled = replace(filled, token=self._text[len(prompt)])
        return filled

    def verify(self, root_token: int, tree: DraftTree, selection: Selection) -> Verified:
        root = self.length  # where the root stands in the text
        verified = super().verify(root_token, tree, selection)
        tokens = verified.tokens.copy()
        for row, node in enumerate((-1, *selection.nodes)):
            path = tree.path(node)
            said = [root_token, *(int(tree.tokens[i]) for i in path)]
            end = root + len(said)
            if self._text[root:end] == said and end < len(self._text):
                tokens[row] = self._text[end]
        return replace(verified, tokens=tokens)
