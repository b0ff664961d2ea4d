"""Counts what a forward would launch on a GPU, on a CPU: operations that reach the dispatcher.

An operation that only makes a view or a tensor without contents launches nothing. Composite ones
are taken apart, as the dispatcher does outside inference mode. Triton kernels do not reach it:
their callers are wrapped. Three things are free on a CPU and are counted by hand: inputs sent up,
routes read, and a graph that is replayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import specfit
from specfit.base.interfaces import Verified
from specfit.base.types import DraftTree, Selection
from specfit.experts.arithmetic import LoopArithmetic
from specfit.experts.cache import ExpertCache
from specfit.experts.copies import CpuCopyEngine
from specfit.experts.engine import ExpertEngine
from specfit.models.target.attention import use_attention
from specfit.models.target.dummy import RandomCheckpoint, load_random
from specfit.models.target.loading import LoadedModel
from specfit.models.target.offloaded import OffloadedTarget

NO_LAUNCH = {"empty", "new_empty", "empty_like", "empty_strided", "_unsafe_view", "lift_fresh"}
CPU = torch.device("cpu")
TINY = {
    "hidden_size": 64,
    "moe_intermediate_size": 16,
    "intermediate_size": 64,
    "head_dim": 8,
    "vocab_size": 512,
}


class Dispatched(TorchDispatchMode):
    """`meet` is given every operation that a device would run."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        kwargs = kwargs or {}
        with self:
            made = func.decompose(*args, **kwargs)
        if made is not NotImplemented:
            return made
        made = func(*args, **kwargs)
        if not _makes_a_view(func) and func.overloadpacket.__name__ not in NO_LAUNCH:
            self.meet(func, args, kwargs, made)
        return made

    def meet(self, func: Any, args: Any, kwargs: Any, made: Any) -> None:
        raise NotImplementedError


class Launches(Dispatched):
    """`counts`: launches by operation, outside `paused` parts."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self._paused = False

    @property
    def total(self) -> int:
        return self.counts.total()

    def meet(self, func: Any, args: Any, kwargs: Any, made: Any) -> None:
        self.add(func.overloadpacket.__name__)

    def add(self, name: str) -> None:
        if not self._paused:
            self.counts[name] += 1

    @contextmanager
    def paused(self) -> Iterator[None]:
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def one(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """A call that is one launch, however many operations stand in for it."""

        def counted(*arguments: Any, **named: Any) -> Any:
            self.add(name)
            with self.paused():
                return call(*arguments, **named)

        return counted


def _makes_a_view(func: Any) -> bool:
    aliases = [made.alias_info for made in func._schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


def as_on_a_gpu(layers: int, dtype: torch.dtype = torch.bfloat16) -> LoadedModel:
    """Qwen3-30B's layers at tiny widths, with the attention that a GPU uses."""
    folder = Path(specfit.__file__).parent / "weights" / "qwen3-30b-a3b-dummy"
    loaded = load_random(RandomCheckpoint(folder, TINY), dtype, CPU, layers)
    use_attention(loaded.model, torch.device("cuda"))
    return loaded


def resident_target(loaded: LoadedModel, *fused: Any) -> OffloadedTarget:
    """`fused`: its layer kernels, and how graphs are captured."""
    shape = loaded.geometry
    cache = ExpertCache(shape.layers, shape.experts, shape.experts, staging_blocks=3)
    arithmetic = LoopArithmetic(loaded.activation)
    engine = ExpertEngine(loaded.store, cache, CpuCopyEngine(), arithmetic, CPU)
    return OffloadedTarget(loaded, engine, (0, 1, 2), None, CPU, *fused)


def verify(target: OffloadedTarget, rows: int) -> Verified:
    """A chain of `rows` rows, the root included."""
    nodes = np.arange(rows - 1)
    chain = DraftTree(nodes + 3, nodes - 1, nodes + 1, 1.0 / (nodes + 2))
    return target.verify(7, chain, Selection(tuple(nodes.tolist())))


def count(target: OffloadedTarget, rows: int, patch: pytest.MonkeyPatch) -> Launches:
    """Of a verify, its output head included and its experts left out."""
    target.begin()
    target.prefill(np.arange(12))
    verify(target, rows)  # whatever is made once
    launches = Launches()
    engine, run = target.engine, target.engine.run
    with patch.context() as patched:
        routes_and_experts = launches.one("routes down", run)
        patched.setattr(engine, "run", routes_and_experts)
        patched.setattr(target, "_upload", launches.one("inputs up", target._upload))
        kernels = target._fused and target._fused.layers[0]._kernels
        for name in ("norm", "rotate", "route") if kernels else ():
            patched.setattr(kernels, name, launches.one(name, getattr(kernels, name)))
        for captured in target._graphs._held.values() if target._graphs else ():
            replays = [launches.one("graph", replay) for replay in captured.replays]
            patched.setattr(captured, "replays", replays)
        with launches:
            verify(target, rows)
    return launches
