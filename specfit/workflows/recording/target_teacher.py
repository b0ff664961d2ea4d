"""A known text through the target layer by layer: every row of a batch passes a layer together.

However many rows there are, each expert of a layer is streamed once per pass; a batch takes two
passes, because the drafter needs features of late layers before there are nodes to route:

    text    every token of every request, causally: features, routes, what the target says next
    pools   every node of every position (once, see `forest`), on the text's KV: routes

Off the clock throughout: no residency, no counter, no time. Letters: T rows of a request's text,
n positions (the last n rows are roots), N nodes of a position, L layers, k routed experts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from specfit.base.types import DraftTree, IntArray, Routes, SpecfitError
from specfit.experts.engine import ExpertEngine
from specfit.models.target.kv import KVCache
from specfit.models.target.loading import LoadedModel
from specfit.workflows.recording.target_forest import Forest, pack

ROWS = 512
"""Rows of the text in one call of attention or of the output head."""

NODES = 128
"""Nodes in one attention call (or one row's): each is a key that the others' masks leave out, so
512 of them would more than double what attention costs beside a text of some hundred tokens."""


@dataclass(frozen=True, eq=False)
class TextPass:
    """What the first pass leaves of one request."""

    tokens: IntArray  # [T]
    features: torch.Tensor  # [T, 3H]
    routes: np.ndarray  # [T, L, k]
    said: IntArray  # [T], the target's next token after each row
    margins: np.ndarray  # [T], logit of `said` above the second best
    kv: KVCache


@dataclass(frozen=True, eq=False)
class Streamed:
    """One pass in numbers."""

    rows: int
    experts: IntArray  # [L], distinct ones that ran; the last layer's only where it is wanted


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
        if loaded.family.windowed:
            raise SpecfitError(
                f"a {loaded.family.model_type} target is not recorded so far: its sliding window "
                "is not in the passes over whole texts; run it live"
            )
        self._engine, self._device = engine, device
        self._decoder, self._head = loaded.model.model, loaded.model.lm_head
        self._aux_layers, self._cache_argument = list(aux_layers), cache_argument
        self._layers = loaded.geometry.layers
        self.streamed: list[Streamed] = []  # since it was last emptied

    @torch.inference_mode()
    def text(self, texts: Sequence[IntArray]) -> list[TextPass]:
        """texts [T] each."""
        caches = [KVCache(self._layers) for _ in texts]
        hidden = [self._embed(text) for text in texts]
        attends = [self._causal(len(text), kv) for text, kv in zip(texts, caches, strict=True)]
        hidden, aux, routes = self._through(hidden, attends, whole=True)
        passes = []
        for text, kv, rows, features, routed in zip(
            texts, caches, hidden, aux, routes, strict=True
        ):
            kv.length = kv.start = len(rows)
            said, margins = self._read_out(rows)
            passes.append(TextPass(text, features, routed, said, margins, kv))
        return passes

    def _read_out(self, hidden: torch.Tensor) -> tuple[IntArray, np.ndarray]:
        """hidden [T, H] -> the next token of each row and its margin, never [T, vocabulary]."""
        said, margins = [], []
        for rows in hidden.split(ROWS):
            best = self._head(self._decoder.norm(rows)).float().topk(2, dim=-1)
            said.append(best.indices[:, 0].cpu().numpy())
            margins.append((best.values[:, 0] - best.values[:, 1]).cpu().numpy())
        return np.concatenate(said), np.concatenate(margins)

    @torch.inference_mode()
    def pools(
        self, passes: Sequence[TextPass], pools: Sequence[Sequence[DraftTree]]
    ) -> list[list[Routes]]:
        """One atlas for every pool; request r's pools have the last len(pools[r]) rows as roots."""
        forests = [pack(done.tokens, trees) for done, trees in zip(passes, pools, strict=True)]
        hidden = [self._embed(forest.tokens) for forest in forests]
        pairs = zip(passes, forests, strict=True)
        attends = [self._pooled(done.kv, forest) for done, forest in pairs]
        _, _, routes = self._through(hidden, attends, whole=False)
        result = []
        for done, forest, routed in zip(passes, forests, routes, strict=True):
            known = np.concatenate([done.routes, routed])  # by place
            roots = done.routes[len(done.routes) - len(forest.places) :]
            places = zip(roots, forest.places, strict=True)
            result.append([Routes(root, known[own]) for root, own in places])
        return result

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
        routes = np.stack(self._engine.routes, axis=1)  # [T, L, k]
        named = [np.bincount(ids.ravel()) > 0 for ids in self._engine.routes]
        experts = np.array([flags.sum() for flags in named], dtype=np.int64)
        experts[-1] *= whole
        self.streamed.append(Streamed(len(routes), experts))
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

    def _pooled(self, kv: KVCache, forest: Forest) -> Attend:
        """Rows go in groups, whose nodes lie behind the text as scratch."""
        groups = []
        for group in forest.groups(NODES):
            mask = torch.from_numpy(forest.mask(group, kv.length)).to(self._device)
            groups.append((group, mask, self._ids((forest.rows + forest.depths)[group])))

        def attend(layer: Any, hidden: torch.Tensor) -> torch.Tensor:
            kv.start = kv.length
            return torch.cat(
                [self._attention(layer, hidden[at], mask, where, kv) for at, mask, where in groups]
            )

        return attend
