"""What a trained route source says at every position of a recording, for replays of it.

The recorded texts go through the target once more (one causal pass) and the head runs over the
recorded pool of every position; the predictor then reads what it would read in a run. A recording
may come from another machine, whose last bits differ: where the head would now draft another pool
of equal probability, the recorded one is used and the tie is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from specfit.base.types import ROOT, DraftTree, SpecfitError
from specfit.decoding.replay.routes import check_same_pair, recent_uses
from specfit.decoding.resolve import LiveRunSpec
from specfit.models.routes.predictor import (
    DECAYS,
    RoutePredictor,
    in_bytes,
    load_predictor,
    most_likely,
)
from specfit.models.routes.recent_use import Use
from specfit.storage import provenance
from specfit.storage.recording.files import Recording, file_digest
from specfit.storage.recording.requests import RecordedRequest
from specfit.storage.recording.route_predictions import (
    Predicted,
    keyed,
    predictions_folder,
    write_predictions,
)
from specfit.workflows.recording.drafter_teacher import TeacherDrafter
from specfit.workflows.recording.target_teacher import TeacherTarget
from specfit.workflows.waiting import build_runtime

Say = Callable[[str], None]


def add_predictions(spec: LiveRunSpec, recording: Recording, say: Say) -> Path:
    """The folder of routes=learned's predictions for this recording, made when missing."""
    file = spec.routes_file
    if spec.config.routes.name != "learned" or file is None:
        raise SpecfitError(
            "predictions of routes=learned can be added to a recording; the other sources need none"
        )
    check_same_pair(
        recording.identity, spec.target_digest, spec.drafter_digest, spec.config.model.dtype
    )
    digest = file_digest(file)
    folder = predictions_folder(recording, digest)
    if folder.is_dir() and not spec.config.force:
        say(f"found predicted (force=true predicts again): {folder}")
        return folder
    pair = {"target": spec.target_digest, "drafter": spec.drafter_digest}
    predictor = load_predictor(file, pair, spec.device)
    teacher = _Teacher(spec, predictor)
    result: dict[str, list[Predicted]] = {}
    # Calibration texts too: with prefetching, probes are predicted as the run is.
    requests = [(key, one) for key, one in keyed(recording) if one.positions]
    for start in range(0, len(requests), spec.config.record.batch):
        batch = requests[start : start + spec.config.record.batch]
        predicted = teacher.predict([one for _, one in batch])
        result |= {key: ones for (key, _), ones in zip(batch, predicted, strict=True)}
        say(f"predicted {len(result)} of {len(requests)} requests")
    about: dict[str, Any] = {"source": "learned", "provenance": provenance.collect().as_dict()}
    if teacher.tied_pools:
        say(
            f"at {teacher.tied_pools} of {teacher.pools} positions the head would now draft "
            "another pool of equal probability (a tie, decided by the last bit); the recorded one "
            "is used"
        )
        about |= {"tied_pools": teacher.tied_pools, "pools": teacher.pools}
    return write_predictions(recording, digest, result, about)


class _Teacher:
    def __init__(self, spec: LiveRunSpec, predictor: RoutePredictor) -> None:
        runtime = build_runtime(spec, spec.slots, True)
        assert runtime.head is not None, "a recording was drafted by a head"
        target, aux = runtime.target, runtime.head.config.aux_layer_ids
        self._target = TeacherTarget(
            runtime.loaded, runtime.engine, aux, target.cache_argument, spec.device
        )
        shape = spec.config.drafter
        self._drafter = TeacherDrafter(runtime.head, shape.max_depth, shape.top_k, spec.device)
        self._head, self._predictor, self._device = runtime.head, predictor, spec.device
        self.pools = self.tied_pools = 0

    def predict(self, batch: Sequence[RecordedRequest]) -> list[list[Predicted]]:
        texts = []
        for one in batch:
            assert one.request is not None and one.output_ids is not None
            texts.append(np.concatenate([one.request.prompt_ids, one.output_ids[: one.positions]]))
        passes = self._target.text(texts)
        result = []
        for one, text, done in zip(batch, texts, passes, strict=True):
            assert one.pools is not None
            known = [one.pools.grown(position) for position in range(one.positions)]
            features, differing = self._drafter.follow(text, done.features, known)
            self._count(one, differing)
            trees = [levels[-1] for levels in known]
            roots = text[-one.positions :].tolist()
            uses = recent_uses(one, DECAYS, self._predictor.shape.experts)
            at_each = zip(trees, features, roots, uses, strict=True)
            result.append([self._position(*at_one) for at_one in at_each])
        return result

    @torch.inference_mode()
    def _position(self, tree: DraftTree, features: torch.Tensor, root: int, use: Use) -> Predicted:
        """features [U, H] of the distinct parents, root first."""
        expanded = np.unique(tree.parents)
        parents = np.concatenate([[ROOT], tree.parents])
        depths = self._long(np.concatenate([[0], tree.depths]))
        tokens = self._long(np.concatenate([[root], tree.tokens]))
        rows = features[self._long(np.searchsorted(expanded, parents))]
        recent = torch.from_numpy(use).to(self._device)[None]
        logits = self._predictor(rows, self._head.embed_tokens(tokens), depths, recent)
        above = logits[self._long(parents + 1)]  # of the root: itself
        ids = most_likely(logits, self._predictor.shape.top_k)
        chances = in_bytes(self._predictor.if_new(logits, above, depths))
        return Predicted(ids.astype(np.uint8), chances)

    def _long(self, values: np.ndarray) -> torch.Tensor:
        return torch.as_tensor(values, dtype=torch.long, device=self._device)

    def _count(self, one: RecordedRequest, differing: np.ndarray) -> None:
        """differing [n, 2]: nodes that are tied, nodes that another head must have drafted."""
        self.pools += len(differing)
        self.tied_pools += int((differing[:, 0] > 0).sum())
        others = np.flatnonzero(differing[:, 1])
        if len(others):
            raise SpecfitError(
                f"at position {others[0]} of request {one.request_id} the recorded pool holds "
                f"tokens that this head finds less probable than others ({len(others)} of "
                f"{len(differing)} positions); record again with this drafter: add force=true to "
                "the command that made the recording"
            )
