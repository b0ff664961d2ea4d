"""A drafter without weights: it drafts each request's own text, right with a given chance.

Its pool is EAGLE's: `top_k` children of the `top_k` most probable nodes of a level. A node's
first child says the text's next token with a chance h that is drawn around `hits[depth - 1]`, its
j-th other child with (1 - h) / 2**j; those chances are also the drafted probabilities, so that
they are worth what they say. A wrong child is a token that follows the one before it elsewhere in
the known texts: a random id would be routed to rare experts, and a rule that prices experts would
tell it from a right one. Every draw depends on (seed, prompt, position, path, texts) alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from specfit.base.hashing import mix, unit
from specfit.base.interfaces import Features
from specfit.base.types import PROBABILITY_ONE, ROOT, DraftTree, IntArray, SpecfitError

Scripts = Mapping[tuple[int, ...], Sequence[int]]
"""Prompt ids -> the ids that follow them."""

KIND = "oracle of plausible tokens"
"""Part of a run's id: another way to draw wrong tokens gives other rows."""

SPREAD = 0.8
"""How far a chance strays from its mean: this share of the way to 0 or 1, evenly both ways."""


TRIES = 16
"""Draws from each pool of plausible tokens before the next, wider one is asked."""


def _hash(key: np.uint64, value: int) -> np.uint64:
    return np.uint64(mix(key, value))  # compiled code gives a plain int back


class OracleDrafter:
    """Drafts from `scripts`; the text of a prompt it does not know is a run of random ids."""

    def __init__(
        self,
        scripts: Scripts,
        hits: Sequence[float],
        max_depth: int,
        top_k: int,
        vocabulary: int,
        seed: int,
    ) -> None:
        if not hits:
            raise SpecfitError("drafter=oracle needs drafter.hits, its chance to be right by depth")
        self.max_depth, self._top_k = max_depth, top_k
        self._hits, self._vocabulary, self._seed = list(hits), vocabulary, seed
        # The head never sees x_0, so a script is found by the rest of its prompt.
        self._texts = {prompt[1:]: [*prompt[1:], *ids] for prompt, ids in scripts.items()}
        self._all = [token for text in self._texts.values() for token in text]
        followers: dict[int, list[int]] = defaultdict(list)
        for text in self._texts.values():
            for token, after in pairwise(text):
                followers[token].append(after)
        self._followers = dict(followers)
        self.begin()

    def begin(self) -> None:
        self._length, self._key = 0, np.uint64(self._seed)
        self._text: list[int] = []  # without x_0

    @property
    def length(self) -> int:
        return self._length

    def truncate(self, length: int) -> None:
        assert length <= self._length
        self._length = length

    def extend(self, tokens: IntArray, features: Features) -> None:
        if self._length == 0 and len(tokens):
            prompt = tuple(int(token) for token in tokens)
            self._text = self._texts.get(prompt, [])
            for token in prompt:
                self._key = _hash(self._key, token)
        self._length += len(tokens)

    def grow(self, tree: DraftTree) -> DraftTree:
        tokens: list[int] = []
        parents: list[int] = []
        probs: list[int] = []
        for parent in self._beam(tree):
            above = PROBABILITY_ONE if parent == ROOT else int(tree.path_probs[parent])
            said, chances = self._children(tree, parent)
            tokens += said
            parents += [parent] * len(said)
            probs += [min(above, round(above * chance)) for chance in chances]
        return tree.grown(np.array(tokens), np.array(parents), np.array(probs))

    def _beam(self, tree: DraftTree) -> list[int]:
        if len(tree) == 0:
            return [ROOT]
        newest = np.flatnonzero(tree.depths == tree.levels)
        best = np.argsort(-tree.path_probs[newest], kind="stable")[: self._top_k]
        return sorted(newest[best].tolist())

    def _children(self, tree: DraftTree, parent: int) -> tuple[list[int], list[float]]:
        """Tokens and chances of a node's children, most probable first."""
        path = [] if parent == ROOT else [int(tree.tokens[node]) for node in tree.path(parent)]
        key = _hash(self._key, self._length)
        for token in path:
            key = _hash(key, token)
        chances = self._chances(len(path), unit(_hash(key, 0)))
        right, truth = -1, self._next(path)
        if truth is not None:
            cumulative = np.cumsum(chances)
            right = int(np.searchsorted(cumulative, unit(_hash(key, 1)), side="right"))
        said: list[int] = []
        wrong = self._wrong(key, self._before(path))
        for child in range(self._top_k):
            if child == right and truth is not None:
                said.append(truth)
            else:
                said.append(next(one for one in wrong if one != truth and one not in said))
        return said, chances

    def _wrong(self, key: np.uint64, before: int | None) -> Iterator[int]:
        """Tokens for a node's wrong children: what follows `before` in the known texts, what stands
        anywhere in them, any id."""
        draws = 2
        followers = self._followers.get(before, []) if before is not None else []
        for known in (followers, self._all):
            for _ in range(TRIES if known else 0):
                yield known[int(_hash(key, draws)) % len(known)]
                draws += 1
        while True:
            yield int(_hash(key, draws)) % self._vocabulary
            draws += 1

    def _before(self, path: Sequence[int]) -> int | None:
        """The token that the next one follows; None where the text is not known."""
        if path:
            return path[-1]
        return self._text[self._length - 1] if 0 < self._length <= len(self._text) else None

    def _chances(self, depth: int, draw: float) -> list[float]:
        mean = self._hits[min(depth, len(self._hits) - 1)]
        hit = mean + SPREAD * min(mean, 1.0 - mean) * (2.0 * draw - 1.0)
        rest = [(1.0 - hit) / 2**j for j in range(1, self._top_k)]
        return [hit, *(min(hit, chance) for chance in rest)]

    def _next(self, path: Sequence[int]) -> int | None:
        """The token after root and `path`, if both are the text's and it goes on."""
        at = self._length  # of the token after the root, in a text without x_0
        if self._text[at : at + len(path)] != list(path) or at + len(path) >= len(self._text):
            return None
        return self._text[at + len(path)]
