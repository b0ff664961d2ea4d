"""A small network that says which experts a drafted token will use, from what drafting leaves.

    x = [rms(f); rms(e); one-hot(depth)]      f: the head's feature its token was drafted from
    h = silu(W1 x),   h' = h + silu(W2 h)
    y[layer, e] = W3 h' + sum over d of g[depth, d, layer] u[d, layer, e]

The feature already holds the context as the head sees it, the embedding says which of the drafted
tokens this is; u is the text's recent use of the expert (`recent.py`), which the target has told.
The root's own row takes the feature that its children are drafted from, at depth 0. The k highest y
of a layer are the row's route; sigmoid(y) is the chance of an expert, and

    sigmoid(a y + b y_parent + c)             a, b, c by depth and layer

the chance of it where no row above uses it, which is what a union needs (`selection/expected.py`).

Letters: R rows, H hidden size of target and head, W width, D decays, L layers, E experts, k top-k.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from specfit.base.types import CHANCE_ONE, IntArray, SpecfitError

EPS = 1e-6
DECAYS = (0.0, 0.7, 0.9, 0.97)
"""Of the recent use that a predictor reads."""


@dataclass(frozen=True)
class PredictorShape:
    hidden: int
    width: int
    depths: int  # 0 the root's; deeper nodes count as the last
    layers: int
    experts: int
    top_k: int

    @property
    def parameters(self) -> int:
        """Numbers on the device, and about the multiplications of one row."""
        inputs, outputs = 2 * self.hidden + self.depths, self.layers * self.experts
        gains = self.depths * len(DECAYS) * self.layers
        biases, given = 2 * self.width + outputs, self.depths * self.layers * 3
        return (inputs + self.width + outputs) * self.width + biases + gains + given


class RoutePredictor(nn.Module):
    """Calculates in float32 whatever the head's dtype: its own weights are few."""

    def __init__(self, shape: PredictorShape) -> None:
        super().__init__()
        self.shape = shape
        self.enter = nn.Linear(2 * shape.hidden + shape.depths, shape.width)
        self.inner = nn.Linear(shape.width, shape.width)
        self.leave = nn.Linear(shape.width, shape.layers * shape.experts)
        self.gains = nn.Parameter(torch.zeros(shape.depths, len(DECAYS), shape.layers))
        given = torch.tensor([1.0, 0.0, 0.0]).expand(shape.depths, shape.layers, 3)
        self.given = nn.Parameter(given.clone())

    def forward(
        self, features: Tensor, embeddings: Tensor, depths: Tensor, recent: Tensor
    ) -> Tensor:
        """features [R, H], embeddings [R, H], depths [R], recent [R or 1, D, L, E] -> logits
        [R, L, E]."""
        depths = depths.clamp(max=self.shape.depths - 1)
        depth = F.one_hot(depths, self.shape.depths).float()
        h = F.silu(self.enter(torch.cat((rms(features), rms(embeddings), depth), dim=-1)))
        h = h + F.silu(self.inner(h))
        logits = self.leave(h).unflatten(-1, (self.shape.layers, self.shape.experts))
        for d in range(len(DECAYS)):  # one after the other: their sum is never held apart
            logits = logits + self.gains[depths, d, :, None] * recent[:, d]
        return logits

    def if_new(self, logits: Tensor, above: Tensor, depths: Tensor) -> Tensor:
        """Logits [R, L, E] of rows and of their parents -> the rows' where no row above them uses
        the expert; a root's parent is itself."""
        a, b, c = self.given[depths.clamp(max=self.shape.depths - 1), :, None].unbind(-1)
        return a * logits + b * above + c


def rms(x: Tensor) -> Tensor:
    """Rows of mean square 1: neither a head's scale nor a context's length is seen."""
    wide = x.float()
    return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPS)


def most_likely(logits: Tensor, top_k: int) -> IntArray:
    """logits [R, L, E] -> the top_k ids of each row, best first, ties to the lower id [R, L, k]."""
    order = torch.sort(logits, dim=-1, descending=True, stable=True).indices
    ids: IntArray = order[..., :top_k].cpu().numpy()
    return ids


def in_bytes(logits: Tensor) -> NDArray[np.uint8]:
    """Chances in units of 2**-8, at most 255."""
    chances = (torch.sigmoid(logits) * CHANCE_ONE).round().clamp(max=CHANCE_ONE - 1)
    found: NDArray[np.uint8] = chances.to(torch.uint8).cpu().numpy()
    return found


# -- the file ------------------------------------------------------------------------------------


def save_predictor(path: Path, predictor: RoutePredictor, about: Mapping[str, str]) -> None:
    """float16; `about` names the pair it was trained for: target, drafter."""
    tensors = {name: t.to(torch.float16) for name, t in predictor.state_dict().items()}
    shape = {name: str(value) for name, value in asdict(predictor.shape).items()}
    save_file(tensors, path, metadata={"format": "pt", **shape, **about})


def load_predictor(path: Path, pair: Mapping[str, str], device: torch.device) -> RoutePredictor:
    """Raises SpecfitError for a file that is absent, damaged or of another target or head."""
    stored, tensors = _read(path)
    try:
        shape = PredictorShape(**{n: int(stored[n]) for n in PredictorShape.__annotations__})
    except (KeyError, ValueError):
        raise SpecfitError(
            f"{path} is no route predictor; scripts/train/route_predictor.py makes one"
        ) from None
    for name, digest in pair.items():
        if stored.get(name) != digest:
            raise SpecfitError(
                f"{path} was trained for another {name}; scripts/train/route_predictor.py makes "
                "one for this pair, and routes.path names its folder"
            )
    with torch.device("meta"):
        predictor = RoutePredictor(shape)
    wide = {name: tensor.float().to(device) for name, tensor in tensors.items()}
    try:
        predictor.load_state_dict(wide, assign=True)
    except RuntimeError as error:
        raise SpecfitError(f"{path} is damaged ({str(error).splitlines()[-1].strip()})") from None
    return predictor.requires_grad_(False).eval()


def _read(path: Path) -> tuple[dict[str, str], dict[str, Any]]:
    if not path.is_file():
        raise SpecfitError(f"no route predictor at {path}; set routes.path to its folder")
    try:
        with safe_open(path, "pt") as file:
            names = file.keys()  # a file itself cannot be walked
            return file.metadata() or {}, {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError) as error:
        raise SpecfitError(f"{path} cannot be read ({error})") from None
