"""The target on the clock (prefill, verify, keep) and off it (observe), one layer loop for all."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from specfit.base.interfaces import Prefilled, Verified
from specfit.base.types import (
    NOT_A_TOKEN,
    ROOT,
    DraftTree,
    ForwardTrace,
    IntArray,
    Routes,
    Selection,
    SpecfitError,
)
from specfit.experts.arithmetic import Uploads
from specfit.experts.engine import ExpertEngine
from specfit.models.target.attention import MOST_ROWS
from specfit.models.target.fused_layer import FusedLayers, LayerKernels, fusable
from specfit.models.target.graphs import Capture, LayerGraphs, Size
from specfit.models.target.inputs import Sent, send
from specfit.models.target.kv import KVCache
from specfit.models.target.loading import LoadedModel
from specfit.models.target.masks import causal_mask, tree_mask, windowed

Step = Callable[[int, torch.Tensor], torch.Tensor]
"""Of a layer's index and what enters it [1, T, H] -> what leaves it."""


class OffloadedTarget:
    """Batch 1. `aux_layers` are the input-of-layer ids whose hidden states the drafter reads.

    `kernels`: fuse the layers that they know, for few rows; `capture`: and run those as graphs.
    Raises SpecfitError where there is nothing to capture.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        engine: ExpertEngine,
        aux_layers: Sequence[int],
        prefill_chunk: int | None,
        device: torch.device,
        kernels: LayerKernels | None = None,
        capture: Capture | None = None,
    ) -> None:
        loaded.attach(engine)
        self.engine, self.geometry = engine, loaded.geometry
        self.expert_bytes = loaded.store.block_bytes
        self._head, self._decoder = loaded.model.lm_head, loaded.model.model
        self.aux_layers = list(aux_layers)
        self._chunk = prefill_chunk
        self._kv = KVCache(self.geometry.layers)
        self._windows = loaded.windows if loaded.family.windowed else [None] * self.geometry.layers
        # transformers renamed the argument in 5.24; its position among the others never changed.
        names = inspect.signature(self._decoder.layers[0].forward).parameters
        self.cache_argument = "cache" if "cache" in names else "past_key_values"
        self._layers = list(self._decoder.layers)
        if engine.arithmetic.compiles:
            from specfit.models.target.compiled_layer import compiled_layers

            self._layers = compiled_layers(self._decoder, self.cache_argument)
        self._fused: FusedLayers | None = None
        if kernels is not None and fusable(self._decoder):
            self._fused = FusedLayers(self._decoder, kernels)
        if capture is not None and self._fused is None:
            raise SpecfitError(
                "gpu.graphs=true captures fused layers, which Triton and a Qwen3 MoE target have; "
                "this target runs without, so use gpu.graphs=false"
            )
        self._graphs: LayerGraphs | None = None
        if capture is not None and self._fused is not None:
            self._graphs = LayerGraphs(self._fused, self._kv, capture)
        self._upload = Uploads(device)

    @property
    def length(self) -> int:
        return self._kv.length

    def begin(self) -> None:
        self._kv.truncate(0)

    def truncate(self, length: int) -> None:
        self._kv.truncate(length)

    def resident(self) -> np.ndarray:
        return self.engine.cache.resident_mask()

    def residency(self) -> dict[str, np.ndarray]:
        return self.engine.residency()

    @torch.inference_mode()
    def restore(self, residency: dict[str, np.ndarray]) -> None:
        self.engine.restore(residency)

    # -- on the clock ----------------------------------------------------------------------------

    @torch.inference_mode()
    def prefill(self, prompt_ids: IntArray) -> Prefilled:
        step = self._chunk or len(prompt_ids)
        features, routes, traces = [], [], []
        for start in range(0, len(prompt_ids), step):
            chunk = prompt_ids[start : start + step]
            hidden, aux, trace = self._chunk_forward(chunk)
            features.append(aux)
            routes.append(np.stack(self.engine.routes, axis=1))
            traces.append(trace)
        token = int(self._argmax(hidden[-1:])[0])
        fault = self._fault(hidden[-1:]) if token == NOT_A_TOKEN else None
        return Prefilled(token, torch.cat(features), np.concatenate(routes), traces, fault)

    def _chunk_forward(self, chunk: IntArray) -> tuple[torch.Tensor, torch.Tensor, ForwardTrace]:
        first = self._kv.length
        positions = np.arange(first, first + len(chunk))
        self.engine.begin_forward(on_clock=True)
        hidden, aux = self._forward(chunk, positions, causal_mask(first, len(chunk)))
        trace = self.engine.end_forward(billed_rows=len(chunk), is_prefill=True)
        self._kv.keep(range(len(chunk)))
        return hidden, aux, trace

    @torch.inference_mode()
    def verify(self, root_token: int, tree: DraftTree, selection: Selection) -> Verified:
        nodes = np.asarray(selection.nodes, dtype=np.int64)
        tokens = np.concatenate([[root_token], tree.tokens[nodes]])
        positions = self._kv.length + np.concatenate([[0], tree.depths[nodes]])
        mask = tree_mask(self._kv.length, tree.ancestry[np.ix_(nodes, nodes)])
        self.engine.begin_forward(on_clock=True)
        hidden, aux = self._forward(tokens, positions, mask)
        trace = self.engine.end_forward(billed_rows=len(nodes), is_prefill=False)
        routes = np.stack(self.engine.routes, axis=1)
        tokens = self._argmax(hidden)
        fault = self._fault(hidden) if (tokens == NOT_A_TOKEN).any() else None
        return Verified(tokens, aux, routes, trace, fault)

    @torch.inference_mode()
    def keep(self, rows: Sequence[int]) -> None:
        if self.engine.stand_in is not None:
            self.engine.stand_in.keep(self._kv.length, rows)
        self._kv.keep(rows)

    # -- off the clock ---------------------------------------------------------------------------

    @torch.inference_mode()
    def observe(self, root_token: int, tree: DraftTree, seen: int) -> Routes:
        """Routes of the nodes from `seen` on, and of the root, by a forward on scratch KV.

        The root is computed with the first call of a cycle (`seen` = 0); later calls build on the
        scratch rows of the earlier ones, give the new nodes' routes alone and an empty root.
        """
        first = ROOT if seen == 0 else seen
        new = np.arange(first, len(tree))
        tokens = np.concatenate([[root_token], tree.tokens])[new + 1]
        depths = np.concatenate([[0], tree.depths])[new + 1]
        length = self._kv.length
        mask = tree_mask(length, tree.ancestry)
        self._kv.start = length + int(new[0]) + 1
        self.engine.begin_forward(on_clock=False)
        columns = length + np.concatenate([[0], tree.depths])
        rows = None if mask is None else mask[..., new + 1, :]
        self._forward(tokens, length + depths, rows, columns)
        self._kv.start = length
        routes = np.stack(self.engine.routes, axis=1)
        rooted = routes[0] if seen == 0 else np.empty_like(routes[0])
        return Routes(rooted, routes[1:] if seen == 0 else routes)

    # -- the layer loop --------------------------------------------------------------------------

    def _forward(
        self,
        tokens: IntArray,
        positions: IntArray,
        mask: torch.Tensor | None,
        scratch: IntArray | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """tokens [T], positions [T], mask [1, 1, T, columns] -> hidden [T, H], aux [T, 3H].

        `scratch`: positions of all columns after the kept ones; None: those of the rows.
        """
        if self.engine.stand_in is not None:
            self.engine.stand_in.begin_forward(self._kv.start, tokens, mask)
        hidden, step = self._begin(
            tokens, positions, mask, positions if scratch is None else scratch
        )
        aux: dict[int, torch.Tensor] = {}
        for index in range(len(self._layers)):
            if index in self.aux_layers:
                # Graphs write every layer's result to one place.
                aux[index] = hidden[0] if self._graphs is None else hidden[0].clone()
            hidden = step(index, hidden)
        features = [aux[index] for index in self.aux_layers]
        return hidden[0], torch.cat(features, dim=-1) if features else hidden.new_empty(
            len(tokens), 0
        )

    def _begin(
        self, tokens: IntArray, positions: IntArray, mask: torch.Tensor | None, scratch: IntArray
    ) -> tuple[torch.Tensor, Step]:
        """What enters the first layer [1, T, H], and how a layer is run."""
        first, rows = self._kv.start, len(tokens)
        end = first + rows
        fused = self._fused if rows <= MOST_ROWS else None
        size = Size.of(rows, end) if fused is not None and self._graphs is not None else None
        columns: IntArray = np.arange(first, end)
        masks = self._masks(mask, positions, scratch)
        if size is not None:
            columns = size.columns_of(first, rows)
            masks = {None: size.mask_of(mask, rows, end)}
        sent = send(self._upload, tokens, positions, columns, masks)
        hidden = self._decoder.embed_tokens(sent.tokens)
        angles = self._decoder.rotary_emb(hidden, sent.positions)
        if fused is None:
            return hidden, self._as_its_class(sent, angles)
        shared = fused.rows(angles, sent.columns, sent.masks[None])
        if size is None:
            stored = fused.reserve(self._kv, end, hidden)
            return hidden, lambda index, given: fused.run(index, given, shared, stored, end)
        assert self._graphs is not None
        graphs, captured = self._graphs, self._graphs.begin(size, hidden, shared, end)
        return hidden, lambda index, _: graphs.run(index, captured, rows)

    def _as_its_class(self, sent: Sent, angles: Any) -> Step:
        arguments = {
            "position_ids": sent.positions,
            "position_embeddings": angles,
            "use_cache": True,
            self.cache_argument: self._kv,
        }

        def step(index: int, hidden: torch.Tensor) -> torch.Tensor:
            mask = sent.masks[self._windows[index]]
            result: torch.Tensor = self._layers[index](hidden, attention_mask=mask, **arguments)
            return result

        return step

    def _masks(
        self, mask: torch.Tensor | None, rows: IntArray, scratch: IntArray
    ) -> dict[int | None, torch.Tensor | None]:
        """By the window of a layer."""
        found: dict[int | None, torch.Tensor | None] = {}
        for window in set(self._windows):
            own = mask
            if window is not None:
                columns = np.concatenate([np.arange(self._kv.length), scratch])
                own = windowed(mask, rows, columns, window)
            found[window] = own
        return found

    def _argmax(self, hidden: torch.Tensor) -> IntArray:
        """hidden [T, H] before the final norm -> the target's next token after each row [T];
        NOT_A_TOKEN after a row whose largest logit is not finite."""
        logits = self._head(self._decoder.norm(hidden))
        best = logits.argmax(dim=-1)  # of NaN: its place
        finite = logits.gather(-1, best[:, None])[:, 0].isfinite()
        tokens: IntArray = torch.where(finite, best, NOT_A_TOKEN).cpu().numpy()
        return tokens

    def _fault(self, hidden: torch.Tensor) -> str:
        """Where a forward first stopped being finite: the KV cache holds what entered each layer.

        hidden [T, H]: the output of the last layer.
        """
        if bool(hidden.isfinite().all()):
            return "the target's logits are not finite: its final norm or lm_head overflows"
        layer = self._kv.first_not_finite(self._kv.start + len(hidden))
        before = self.geometry.layers if layer is None else layer
        if layer is not None and not _is_finite(self._decoder.layers[layer]):
            before = layer + 1  # its own keys are the first, from what was still finite
        named = "the embedding" if before == 0 else f"layer {before - 1}"
        return (
            f"the target's logits are not finite from {named} on: a weight there is damaged, or "
            "model.dtype overflows"
        )


def _is_finite(module: torch.nn.Module) -> bool:
    return all(bool(weight.isfinite().all()) for weight in module.parameters())
