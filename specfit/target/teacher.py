"""A known text through the target layer by layer: every row of a batch passes a layer together.

However many rows there are, each expert of a layer is streamed once per pass; a batch takes two
passes, because the drafter needs features of late layers before there are nodes to route:

    text    every token of every request, causally: features, routes, what the target says next
    pools   every node of every position, on the text's KV: routes

Off the clock throughout: no residency, no counter, no time. Letters: T rows of a request's text,
n positions (the last n rows are roots), N nodes of a position, L layers, k routed experts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from specfit.core import DraftTree, IntArray, Routes
from specfit.offload.experts import ExpertEngine
from specfit.target.kv import KVCache
from specfit.target.loading import LoadedModel

ROWS = 512
"""Rows of one attention call; a mask then has this many rows at most (or one position's)."""


@dataclass(frozen=True, eq=False)
class TextPass:
    """What the first pass leaves of one request."""

    features: torch.Tensor  # [T, 3H]
    routes: np.ndarray  # [T, L, k]
    said: IntArray  # [T], the target's next token after each row
    margins: np.ndarray  # [T], logit of `said` above the second best
    kv: KVCache


Attend = Callable[[Any, torch.Tensor], torch.Tensor]
"""(transformers layer, hidden [T, H] of one request) -> hidden after attention [T, H]."""


class TeacherTarget:
    def __init__(
        self,
        loaded: LoadedModel,
        engine: ExpertEngine,
        aux_layers: Sequence[int],
        cache_argument: str,
        device: torch.device,
    ) -> None:
        self._engine, self._device = engine, device
        self._decoder, self._head = loaded.model.model, loaded.model.lm_head
        self._aux_layers, self._cache_argument = list(aux_layers), cache_argument
        self._layers = loaded.geometry.layers

    @torch.inference_mode()
    def text(self, texts: Sequence[IntArray]) -> list[TextPass]:
        """texts [T] each."""
        caches = [KVCache(self._layers) for _ in texts]
        hidden = [self._embed(text) for text in texts]
        attends = [self._causal(len(text), kv) for text, kv in zip(texts, caches, strict=True)]
        hidden, aux, routes = self._through(hidden, attends, whole=True)
        passes = []
        for kv, rows, features, routed in zip(caches, hidden, aux, routes, strict=True):
            kv.length = kv.start = len(rows)
            top = self._head(self._decoder.norm(rows)).float().topk(2, dim=-1)
            margins = (top.values[:, 0] - top.values[:, 1]).cpu().numpy()
            said = top.indices[:, 0].cpu().numpy()
            passes.append(TextPass(features, routed, said, margins, kv))
        return passes

    @torch.inference_mode()
    def pools(
        self, passes: Sequence[TextPass], pools: Sequence[Sequence[DraftTree]]
    ) -> list[list[Routes]]:
        """One atlas for every pool; request r's pools have the last len(pools[r]) rows as roots."""
        tokens = [np.concatenate([tree.tokens for tree in trees]) for trees in pools]
        hidden = [self._embed(rows) for rows in tokens]
        pairs = zip(passes, pools, strict=True)
        attends = [self._pooled(done.kv, trees) for done, trees in pairs]
        _, _, routes = self._through(hidden, attends, whole=False)
        found = []
        for done, trees, routed in zip(passes, pools, routes, strict=True):
            roots = done.routes[len(done.routes) - len(trees) :]
            cuts = np.cumsum([len(tree) for tree in trees])[:-1]
            nodes = np.split(routed, cuts)
            found.append([Routes(root, own) for root, own in zip(roots, nodes, strict=True)])
        return found

    # -- the layer loop ----------------------------------------------------------------------------

    def _through(
        self, hidden: list[torch.Tensor], attends: Sequence[Attend], whole: bool
    ) -> tuple[list[torch.Tensor], list[torch.Tensor], list[np.ndarray]]:
        """hidden [T, H] of each request -> (hidden, features [T, 3H], routes [T, L, k]) of each.

        A transformers layer is used in its two halves, so that the second, which runs the experts,
        takes the rows of all requests.
        """
        sizes = [len(rows) for rows in hidden]
        aux: dict[int, torch.Tensor] = {}
        self._engine.begin_forward(on_clock=False, whole=whole)
        for index, layer in enumerate(self._decoder.layers):
            if index in self._aux_layers:
                aux[index] = torch.cat(hidden)
            pairs = zip(hidden, attends, strict=True)
            rows = torch.cat([attend(layer, own) for own, attend in pairs])
            rows = rows + layer.mlp(layer.post_attention_layernorm(rows)[None])[0]
            hidden = list(rows.split(sizes))
        features = torch.cat([aux[index] for index in self._aux_layers], dim=-1)
        routes = np.stack(self._engine.routes, axis=1)
        cuts = np.cumsum(sizes)[:-1]
        return hidden, list(features.split(sizes)), np.split(routes, cuts)

    def _embed(self, tokens: IntArray) -> torch.Tensor:
        embedded: torch.Tensor = self._decoder.embed_tokens(self._ids(tokens))
        return embedded

    def _ids(self, values: IntArray) -> torch.Tensor:
        return torch.as_tensor(values, dtype=torch.long, device=self._device)

    def _attention(
        self, layer: Any, hidden: torch.Tensor, mask: torch.Tensor, where: torch.Tensor, kv: KVCache
    ) -> torch.Tensor:
        arguments = {
            "attention_mask": mask[None, None],
            "position_ids": where[None],
            "position_embeddings": self._decoder.rotary_emb(hidden[None], where[None]),
            self._cache_argument: kv,
        }
        normed = layer.input_layernorm(hidden)[None]
        return hidden + layer.self_attn(hidden_states=normed, **arguments)[0][0]

    # -- who attends to whom -----------------------------------------------------------------------

    def _causal(self, rows: int, kv: KVCache) -> Attend:
        def attend(layer: Any, hidden: torch.Tensor) -> torch.Tensor:
            parts = []
            for start in range(0, rows, ROWS):
                end = min(start + ROWS, rows)
                where = torch.arange(start, end, device=self._device)
                mask = torch.arange(end, device=self._device) <= where[:, None]
                kv.start = start
                parts.append(self._attention(layer, hidden[start:end], mask, where, kv))
            return torch.cat(parts)

        return attend

    def _pooled(self, kv: KVCache, trees: Sequence[DraftTree]) -> Attend:
        """Positions go in groups: a group's nodes lie behind the text as scratch, each seeing the
        text up to its root and its own ancestors."""
        first = kv.length - len(trees)
        groups = []
        done = 0
        for members in _groups(trees):
            group = [trees[i] for i in members]
            mask, where = _pool_mask(kv.length, [first + i for i in members], group)
            span = slice(done, done + len(mask))
            groups.append((span, mask.to(self._device), where.to(self._device)))
            done = span.stop

        def attend(layer: Any, hidden: torch.Tensor) -> torch.Tensor:
            kv.start = kv.length
            return torch.cat(
                [self._attention(layer, hidden[at], mask, where, kv) for at, mask, where in groups]
            )

        return attend


def _groups(trees: Sequence[DraftTree]) -> list[range]:
    """Neighbouring positions whose nodes together are ROWS at most (or one position)."""
    groups, begin, rows = [], 0, 0
    for i, tree in enumerate(trees):
        if i > begin and rows + len(tree) > ROWS:
            groups.append(range(begin, i))
            begin, rows = i, 0
        rows += len(tree)
    return [*groups, range(begin, len(trees))]


def _pool_mask(
    length: int, roots: Sequence[int], trees: Sequence[DraftTree]
) -> tuple[torch.Tensor, torch.Tensor]:
    """(mask [R, length + R], RoPE positions [R]) of the nodes of pools rooted at text rows."""
    sizes = [len(tree) for tree in trees]
    mask = np.zeros((sum(sizes), length + sum(sizes)), dtype=np.bool_)
    where = np.empty(sum(sizes), dtype=np.int64)
    start = 0
    for root, tree in zip(roots, trees, strict=True):
        own = slice(start, start + len(tree))
        mask[own, : root + 1] = True
        mask[own, length + own.start : length + own.stop] = tree.ancestry
        where[own] = root + tree.depths
        start = own.stop
    return torch.from_numpy(mask), torch.from_numpy(where)
