"""Routing traces that other engines wrote: three formats to one form, or one sentence of refusal.

    *.npz           an array [tokens, layers, k] or [sequences, tokens, layers, k] of expert ids, as
                    vLLM and SGLang return `routed_experts`; where several arrays are of that form,
                    the first; an optional scalar `experts`
    route CSV       `# route_trace` of BigMoeOnEdge: comment lines with the model's shape and the
                    bytes of each layer's experts, then turn,phase,step,layer,slot,expert,..
    lines           token,layer,expert as a llama.cpp callback prints them, with a header line that
                    names the columns; the experts of a token and layer in order of rank

Files may be compressed (.gz, .xz). numpy and pandas only.
"""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from specfit.base.types import SpecfitError

ABSENT = -1
"""The expert of a row that did not reach a layer: engines skip the last layer of prompt tokens
whose output nothing reads."""

WINDOW = 8
"""Consecutive tokens whose union of experts is compared between layers."""

OUTLIER_SHARE, OUTLIER_DEVIATIONS = 0.65, 4.0
"""A layer is an outlier where its union differs from the median layer's by this share of it and by
so many median absolute deviations (scaled to a normal's). Layers of four public traces differ by up
to 0.58; a constant layer or uniform ids of Qwen3-30B-A3B by 0.70 and 0.92."""


@dataclass(frozen=True, eq=False)
class RoutingTrace:
    """Expert ids [tokens, layers, k] of each sequence, `ABSENT` where a row skipped a layer."""

    name: str
    sequences: tuple[NDArray[np.int16], ...]
    experts: int
    prompt_tokens: tuple[int, ...] | None = None  # of each sequence; None: not marked
    expert_bytes: NDArray[np.int64] | None = None  # [L]

    @property
    def layers(self) -> int:
        return int(self.sequences[0].shape[1])

    @property
    def top_k(self) -> int:
        return int(self.sequences[0].shape[2])

    @property
    def tokens(self) -> int:
        return sum(map(len, self.sequences))

    def passes(self) -> list[NDArray[np.int16]]:
        """Each prompt as one pass, then one token a pass. Raises SpecfitError without marks."""
        if self.prompt_tokens is None:
            raise SpecfitError(f"{self.name} does not say where its prompts end")
        found = []
        for ids, prompt in zip(self.sequences, self.prompt_tokens, strict=True):
            found.append(ids[:prompt])
            found += [ids[at : at + 1] for at in range(prompt, len(ids))]
        return found

    def complete(self) -> tuple[NDArray[np.int16], ...]:
        """Of each sequence the longest run of tokens that reached every layer."""
        return tuple(_longest_whole(ids) for ids in self.sequences)


def read_trace(path: Path, experts: int | None = None) -> RoutingTrace:
    """Raises SpecfitError for a file that is no trace, or a bad one.

    `experts`: of a layer, where the file does not say it.
    """
    if not path.is_file():
        raise SpecfitError(f"no trace at {path}; name a file of routed experts")
    if path.suffix == ".npz":
        trace = _read_arrays(path, experts)
    else:
        head = _head(path)
        read = _read_route_csv if head.startswith("# route_trace") else _read_lines
        trace = read(path, experts)
    check_trace(trace)
    return trace


# -- formats ---------------------------------------------------------------------------------------


def _read_arrays(path: Path, experts: int | None) -> RoutingTrace:
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError) as error:
        raise SpecfitError(f"{path} cannot be read as .npz ({error})") from None
    fitting = [
        name
        for name, array in arrays.items()
        if array.ndim in (3, 4) and np.issubdtype(array.dtype, np.integer)
    ]
    if not fitting:
        shown = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "nothing"
        raise SpecfitError(
            f"{path} has no array of expert ids [tokens, layers, k] or [sequences, tokens, layers, "
            f"k]; it has {shown}"
        )
    ids = arrays[fitting[0]]
    said = int(arrays["experts"]) if "experts" in arrays else experts
    if said is None:
        raise SpecfitError(
            f"{path} does not say how many experts a layer has; set record.experts, or add a "
            "number named experts to it"
        )
    sequences = tuple(ids) if ids.ndim == 4 else (ids,)
    return RoutingTrace(path.name, tuple(_small(one, path, said) for one in sequences), said)


def _read_route_csv(path: Path, experts: int | None) -> RoutingTrace:
    shape, sizes = _route_header(path, experts)
    layers = shape["n_layer"]
    rows = _table(path, ("turn", "phase", "step", "layer", "slot", "expert"))
    _refuse_layers(path, rows["layer"], layers)
    sequences, prompts = [], []
    for _, turn in rows.groupby("turn", sort=True):
        order = turn.groupby(["phase", "step"], sort=True).ngroup().to_numpy()
        prompts.append(int(turn.loc[turn["phase"] == 0, "step"].nunique()))
        place = order, turn["layer"].to_numpy(), turn["slot"].to_numpy()
        sequences.append(_filled(path, place, turn["expert"].to_numpy(), layers))
    known = np.array([sizes[layer] for layer in range(layers)], dtype=np.int64)
    small = tuple(_small(ids, path, shape["n_expert"]) for ids in sequences)
    return RoutingTrace(path.name, small, shape["n_expert"], tuple(prompts), known)


def _route_header(path: Path, experts: int | None) -> tuple[dict[str, int], dict[int, int]]:
    """({n_layer, n_expert}, expert bytes by layer). The rows give 0 bytes for a resident expert."""
    shape: dict[str, int] = {} if experts is None else {"n_expert": experts}
    sizes: dict[int, int] = {}
    for line in _comments(path):
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if "layer" in words and "expert_bytes" in words:
            sizes[int(words["layer"])] = int(words["expert_bytes"])
        shape |= {key: int(words[key]) for key in ("n_layer", "n_expert") if key in words}
    for key in ("n_layer", "n_expert"):
        if key not in shape:
            raise SpecfitError(f"{path} has no {key}= in its comment lines")
    lacking = [layer for layer in range(shape["n_layer"]) if layer not in sizes]
    if lacking:
        raise SpecfitError(f"{path} has no `# layer={lacking[0]} expert_bytes=` line")
    return shape, sizes


def _read_lines(path: Path, experts: int | None) -> RoutingTrace:
    rows = _table(path, ("token", "layer", "expert"))
    if experts is None:
        raise SpecfitError(f"{path} does not say how many experts a layer has; set record.experts")
    layers = int(rows["layer"].max()) + 1
    _refuse_layers(path, rows["layer"], layers)
    token = rows.groupby("token", sort=True).ngroup().to_numpy()
    rank = rows.groupby(["token", "layer"], sort=False).cumcount().to_numpy()
    ids = _filled(path, (token, rows["layer"].to_numpy(), rank), rows["expert"].to_numpy(), layers)
    return RoutingTrace(path.name, (_small(ids, path, experts),), experts)


def _table(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    try:
        rows = pd.read_csv(path, comment="#", skipinitialspace=True)
    except (OSError, ValueError, UnicodeDecodeError) as error:
        raise SpecfitError(
            f"{path} cannot be read as comma-separated lines ({str(error).splitlines()[0]})"
        ) from None
    lacking = [name for name in columns if name not in rows.columns]
    if lacking:
        raise SpecfitError(
            f"{path} has no column {lacking[0]}; its header line names the columns, and "
            f"{','.join(columns)} are needed"
        )
    if rows.empty:
        raise SpecfitError(f"{path} has no rows")
    for name in columns:
        if not pd.api.types.is_integer_dtype(rows[name]) or int(rows[name].min()) < 0:
            raise SpecfitError(f"{path}: the column {name} must hold whole numbers from 0 up")
    return rows


def _filled(
    path: Path, place: tuple[np.ndarray, ...], experts: np.ndarray, layers: int
) -> NDArray[np.int64]:
    """[T, L, k] from (token, layer, rank) of each row."""
    token, _, rank = place
    ids = np.full((int(token.max()) + 1, layers, int(rank.max()) + 1), ABSENT, dtype=np.int64)
    if len(np.unique(np.stack(place), axis=1).T) != len(experts):
        raise SpecfitError(f"{path} names one token, layer and rank twice")
    ids[place] = experts
    return ids


def _refuse_layers(path: Path, named: pd.Series, layers: int) -> None:
    there = set(named.unique().tolist())
    lacking = [layer for layer in range(layers) if layer not in there]
    if lacking:
        raise SpecfitError(f"{path} holds no routes of layer {lacking[0]} of {layers}")
    beyond = [layer for layer in there if layer >= layers]
    if beyond:
        raise SpecfitError(f"{path} names layer {beyond[0]}; the model has 0 to {layers - 1}")


def _head(path: Path) -> str:
    return next(iter(_comments(path)), "")


def _comments(path: Path) -> list[str]:
    """The comment lines at the top."""
    compressed: dict[str, Callable[..., IO[str]]] = {".gz": gzip.open, ".xz": lzma.open}
    opened = compressed.get(path.suffix, open)
    try:
        with opened(path, "rt", encoding="utf-8") as lines:
            return [line.strip() for line in takewhile(lambda line: line.startswith("#"), lines)]
    except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError) as error:
        raise SpecfitError(f"{path} cannot be read as text ({error})") from None


# -- checks ----------------------------------------------------------------------------------------


def _small(ids: np.ndarray, path: Path, experts: int) -> NDArray[np.int16]:
    """Within range, before they are made small."""
    if ids.size == 0:
        raise SpecfitError(f"{path} has no tokens")
    worst = int(ids.max()) if int(ids.max()) >= experts else int(ids.min())
    if worst >= experts or worst < ABSENT:
        raise SpecfitError(f"{path} names expert {worst}; a layer has 0 to {experts - 1}")
    return ids.astype(np.int16)


def check_trace(trace: RoutingTrace) -> None:
    """Raises SpecfitError for a row that names an expert twice or in part, a layer that is missing
    from some tokens, or one whose union grows unlike the others'."""
    if len({ids.shape[1:] for ids in trace.sequences}) != 1:
        raise SpecfitError(f"{trace.name} has sequences of unequal layers or experts per token")
    for number, ids in enumerate(trace.sequences):
        _check_rows(trace.name, number, ids)
    name_outlier(trace)


def _check_rows(name: str, number: int, ids: NDArray[np.int16]) -> None:
    at = f"sequence {number}, token %d, layer %d"
    absent = (ids == ABSENT).sum(axis=2)
    part = np.argwhere((absent > 0) & (absent < ids.shape[2]))
    if len(part):
        raise SpecfitError(f"{name} has a row of fewer experts than others ({at % tuple(part[0])})")
    skipped = np.argwhere(absent[:, :-1] > 0)
    if len(skipped):
        raise SpecfitError(f"{name} lacks a layer ({at % tuple(skipped[0])})")
    ordered = np.sort(ids, axis=2)
    twice = (ordered[:, :, 1:] == ordered[:, :, :-1]) & (ordered[:, :, 1:] != ABSENT)
    again = np.argwhere(twice.any(axis=2))
    if len(again):
        raise SpecfitError(f"{name} names an expert twice in one row ({at % tuple(again[0])})")


def name_outlier(trace: RoutingTrace) -> None:
    """A layer captured wrongly (of another pass, of another layer, one row repeated) shows in how
    its union of consecutive tokens grows: layers of one model resemble each other there."""
    growth = layer_growth(trace)
    if growth is None:
        return
    middle = float(np.median(growth))
    spread = 1.4826 * float(np.median(np.abs(growth - middle)))
    away = np.abs(growth - middle)
    layer = int(np.argmax(away))
    if away[layer] > OUTLIER_SHARE * middle and away[layer] > OUTLIER_DEVIATIONS * spread:
        raise SpecfitError(
            f"{trace.name}: {WINDOW} consecutive tokens use {growth[layer]:.1f} experts in layer "
            f"{layer} and {middle:.1f} in the median layer; that layer was captured wrongly"
        )


def layer_growth(trace: RoutingTrace) -> NDArray[np.float64] | None:
    """[L]: mean distinct experts of WINDOW consecutive tokens; None for too short a trace."""
    total, windows = np.zeros(trace.layers), 0
    for ids in trace.complete():
        if len(ids) < 2 * WINDOW:
            continue
        named = np.zeros((*ids.shape[:2], trace.experts), dtype=np.int32)
        np.put_along_axis(named, ids.astype(np.int64), 1, axis=2)
        counts = np.concatenate([np.zeros_like(named[:1]), np.cumsum(named, axis=0)])
        union = (counts[WINDOW:] - counts[:-WINDOW]) > 0
        total += union.sum(axis=(0, 2))
        windows += len(union)
    return total / windows if windows else None


def _longest_whole(ids: NDArray[np.int16]) -> NDArray[np.int16]:
    whole = np.concatenate([[False], (ids != ABSENT).all(axis=(1, 2)), [False]])
    edges = np.flatnonzero(whole[1:] != whole[:-1]).reshape(-1, 2)
    if len(edges) == 0:
        return ids[:0]
    start, end = edges[int(np.argmax(edges[:, 1] - edges[:, 0]))]
    return ids[start:end]
