"""How right route sources are, position by position: results/bench/routes_<run id>.json.

    python -m specfit.replay recording=<id> routes=learned
    python scripts/studies/study.py routes results/replays/<run id>
Compared with the recorded exact routes of every row of every pool. Recall is of a row's routed
experts, per depth (0 is the root) and layer. Unions are of the root and the n most probable nodes,
n = 0 .. K: the family whose size a rule could not do without; `expected` is E[F] of the source's
own chances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from specfit.base.published import QWEN3_30B_A3B
from specfit.base.types import CHANCE_ONE, SpecfitError
from specfit.decoding.spec import locate
from specfit.models.routes.noisy import corrupt
from specfit.models.routes.predictor import PredictorShape
from specfit.models.routes.token_table import load_table
from specfit.selection.forced_trees import most_probable
from specfit.storage.manifest import read_manifest
from specfit.storage.recording.files import Recording, file_digest, find_recording, read_recording
from specfit.storage.recording.requests import RecordedRequest
from specfit.storage.recording.route_predictions import Predictions, read_predictions
from specfit.storage.rows import load_run, run_yaml

ACCURACY = 0.6
Floats = NDArray[np.float64]
Chances = Callable[[RecordedRequest, int], Floats]
"""Request, position -> chance [1 + N, L, E] that a row uses an expert; 0 or 1 of hard sets."""


@dataclass
class Tally:
    """Sums over positions. Letters: D depths, L layers, n = 0 .. K."""

    hits: Floats  # [D, L] routed experts that were named
    routed: Floats  # [D, L]
    told: Floats  # [K + 1, L] union as the source sees it
    true: Floats  # [K + 1, L]
    layer_error: Floats  # [K + 1, L] sum of |told - true| / true of one layer
    error: Floats  # [K + 1] the same of the sum over layers
    selections: Floats  # [K + 1] how many went into the four

    @classmethod
    def empty(cls, depths: int, layers: int, k: int) -> Tally:
        by_depth, by_size = (depths, layers), (k + 1, layers)
        sizes = by_depth, by_depth, by_size, by_size, by_size, (k + 1,), (k + 1,)
        return cls(*(np.zeros(size) for size in sizes))

    def add_rows(self, named: Floats, routed: Floats, depths: NDArray[Any]) -> None:
        """[1 + N, L, E] of one position, depths [1 + N]."""
        np.add.at(self.hits, depths, (named * routed).sum(-1))
        np.add.at(self.routed, depths, routed.sum(-1))

    def add_union(self, size: int, told: Floats, true: Floats) -> None:
        """[L] of one selection."""
        self.told[size] += told
        self.true[size] += true
        self.layer_error[size] += np.abs(told - true) / true
        self.error[size] += abs(told.sum() - true.sum()) / true.sum()
        self.selections[size] += 1

    def as_dict(self) -> dict[str, Any]:
        return {name: value.tolist() for name, value in vars(self).items()}


@dataclass
class Study:
    recording: Recording
    ids: list[str]
    k: int
    tallies: dict[str, Tally] = field(default_factory=dict)

    def positions(self) -> Iterator[tuple[RecordedRequest, int]]:
        for request in self.recording.requests:
            if request.pools is not None and request.request_id in self.ids:
                yield from ((request, position) for position in range(len(request.pools)))

    def compare(self, name: str, source: Chances, hard: bool = True) -> None:
        shape = self.recording.shape
        deepest = max(int(r.pools.depths.max()) for r, _ in self.positions() if r.pools is not None)
        tally = self.tallies[name] = Tally.empty(1 + deepest, shape.layers, self.k)
        for request, position in self.positions():
            assert request.pools is not None
            tree = request.pools.tree(position)
            told, true = source(request, position), exact_of(request, position, shape.experts)
            if hard:
                tally.add_rows(told, true, np.concatenate([[0], tree.depths]))
            for size in range(min(self.k, len(tree)) + 1):
                rows = [0, *(node + 1 for node in most_probable(tree, size))]
                left, truly = 1.0 - told[rows], true[rows].max(0)
                tally.add_union(size, (1.0 - left.prod(0)).sum(-1), truly.sum(-1))


def exact_of(request: RecordedRequest, position: int, experts: int) -> Floats:
    assert request.pools is not None
    return sets_of(request.pools.atlas(position), experts)


def sets_of(ids: NDArray[Any], experts: int) -> Floats:
    """ids [R, L, k] -> zeros and ones [R, L, E]."""
    found = np.zeros((*ids.shape[:2], experts))
    np.put_along_axis(found, ids.astype(np.int64), 1.0, axis=-1)
    return found


# -- the sources -----------------------------------------------------------------------------------


def learned(predictions: Predictions, experts: int) -> tuple[Chances, Chances]:
    """Hard sets and chances."""

    def hard(request: RecordedRequest, position: int) -> Floats:
        return sets_of(predictions[request.request_id][position].routes, experts)

    def soft(request: RecordedRequest, position: int) -> Floats:
        return predictions[request.request_id][position].chances / CHANCE_ONE

    return hard, soft


def token_table(table: NDArray[np.uint8], experts: int) -> Chances:
    def told(request: RecordedRequest, position: int) -> Floats:
        assert request.pools is not None and request.output_ids is not None
        tokens = [request.output_ids[position], *request.pools.tree(position).tokens]
        return sets_of(table[np.array(tokens)], experts)

    return told


def last_token(experts: int) -> Chances:
    def told(request: RecordedRequest, position: int) -> Floats:
        assert request.pools is not None and request.prompt_routes is not None
        before = request.prompt_routes[-1]
        if position:
            before = request.pools.atlas(position - 1)[0]
        rows = len(request.pools.atlas(position))
        return np.broadcast_to(sets_of(before[None], experts), (rows, len(before), experts))

    return told


def noisy(accuracy: float, seed: int, experts: int) -> Chances:
    def told(request: RecordedRequest, position: int) -> Floats:
        assert request.pools is not None and request.request is not None
        assert request.output_ids is not None
        tree, atlas = request.pools.tree(position), request.pools.atlas(position)
        root, context = int(request.output_ids[position]), len(request.request.prompt_ids)
        said = (accuracy, seed, request.request_id, context + position + 1)
        paths = [[root, *tree.tokens[list(tree.path(node))]] for node in range(-1, len(tree))]
        rows = [corrupt(ids, *said, path, experts) for ids, path in zip(atlas, paths, strict=True)]
        return sets_of(np.stack(rows), experts)

    return told


# -- what a read costs ---------------------------------------------------------------------------

QWEN3_30B = {
    name: getattr(QWEN3_30B_A3B, name) for name in ("hidden", "layers", "experts", "top_k")
}
HEAD_30B = QWEN3_30B_A3B.draft_head_parameters - QWEN3_30B_A3B.vocabulary * QWEN3_30B_A3B.hidden
"""Numbers of the published bfloat16 head without its embedding, of which few rows are read."""


def sizes_of(shape: PredictorShape, experts_told: int, expanded: int) -> list[dict[str, Any]]:
    """Arithmetic and bytes of one drafted level: `expanded` nodes with as many children each."""
    rows = expanded**2
    here, there = shape.parameters, replace(shape, **QWEN3_30B).parameters
    table = QWEN3_30B_A3B.vocabulary * QWEN3_30B_A3B.layers * experts_told
    return [
        _size("learned, embedded pair", here, 4, rows),
        _size("learned, Qwen3-30B-A3B's shapes", there, 4, rows),
        _size("a level of the Qwen3-30B-A3B head itself", HEAD_30B, 2, expanded),
        {"of": "token table, Qwen3-30B-A3B's shapes", "held_bytes": table, "read_bytes": 0}
        | {"flop": 0},
    ]


def _size(of: str, numbers: int, itemsize: int, rows: int) -> dict[str, Any]:
    """A matrix product: all numbers are read once, each multiplied and added for every row."""
    size_bytes = numbers * itemsize
    return {
        "of": of,
        "held_bytes": size_bytes,
        "read_bytes": size_bytes,
        "flop": 2 * rows * numbers,
    }


# -- the script ------------------------------------------------------------------------------------


def study(replay: Path) -> dict[str, Any]:
    rows, results = load_run(replay), replay.parent.parent
    manifest = read_manifest(replay)
    assert manifest is not None and rows.info.recording is not None, "a replay names its recording"
    digest = manifest.identity["digests"].get("routes")
    if rows.info.routes != "learned" or digest is None:
        raise SpecfitError(f"{replay} did not read learned routes; study a replay that did")
    recording = read_recording(find_recording(rows.info.recording, results))
    folder = locate(options_path(replay))
    if file_digest(folder / "learned.safetensors") != digest:
        raise SpecfitError(f"{folder} holds another predictor than {replay} read; replay again")
    config: Mapping[str, Any] = manifest.identity["config"]
    experts = recording.shape.experts
    study = Study(recording, rows.ok_ids, int(config["selector"]["k"]))
    hard, soft = learned(read_predictions(recording, digest), experts)
    study.compare("learned", hard)
    study.compare("expected", soft, hard=False)
    target = str(recording.identity["target"])
    table = load_table(folder / "token_table.safetensors", target)
    study.compare("token_table", token_table(table, experts))
    study.compare("last_token", last_token(experts))
    study.compare(f"noisy_{ACCURACY:g}", noisy(ACCURACY, int(config["seed"]), experts))
    return {
        "info": asdict(rows.info),
        "requests": len(rows.ok_ids),
        "shape": asdict(recording.shape),
        "sizes": sizes_of(stored_shape(folder), table.shape[-1], int(config["drafter"]["top_k"])),
        "sources": {name: tally.as_dict() for name, tally in study.tallies.items()},
    }


def stored_shape(folder: Path) -> PredictorShape:
    with safe_open(folder / "learned.safetensors", "np") as file:
        stored = file.metadata()
    return PredictorShape(**{name: int(stored[name]) for name in PredictorShape.__annotations__})


def options_path(replay: Path) -> str:
    """`routes.path` of the run, which no id holds."""
    from omegaconf import OmegaConf

    stored: Any = OmegaConf.create(run_yaml(replay))
    return str(stored.routes.path)
