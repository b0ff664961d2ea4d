"""Which reading of a draft head drafts best: committed tokens per cycle over a few questions.

A head that is read wrongly loads, runs and is right (greedy verification repairs every draft): it
only accepts little. Each usual culprit is toggled in turn and its drafts, a chain of one node per
level, are verified by the real target.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch

from specfit.base.interfaces import Features
from specfit.base.types import IntArray, SpecfitError
from specfit.decoding.decoder import Decoder
from specfit.models.drafter.eagle import EagleDrafter
from specfit.models.drafter.head import EagleHead, HeadConfig
from specfit.models.target.offloaded import OffloadedTarget
from specfit.selection.baselines.whole import WholePool

QUESTIONS, TOKENS, DEPTH = 3, 48, 4
CLEAR = 1.02
"""A reading wins where it commits this much more in all, and no less in any question."""

ROPE_BASES = (1e4, 5e5, 1e6, 5e6)


@dataclass(frozen=True, eq=False)
class Reading:
    """`culprit`: what would be wrong with the file or its use, if this reading drafts best."""

    culprit: str
    head: EagleHead
    aux_layers: tuple[int, ...]
    shifts: bool = False  # each feature with its own token instead of the next one


@dataclass(frozen=True)
class Drafted:
    """Committed tokens and cycles of each question, prefill left out."""

    committed: tuple[int, ...]
    cycles: tuple[int, ...]

    @property
    def per_cycle(self) -> float:
        return sum(self.committed) / max(1, sum(self.cycles))

    def beats(self, other: Drafted) -> bool:
        mine = [c / max(1, n) for c, n in zip(self.committed, self.cycles, strict=True)]
        theirs = [c / max(1, n) for c, n in zip(other.committed, other.cycles, strict=True)]
        return self.per_cycle >= CLEAR * other.per_cycle and all(
            a >= b for a, b in zip(mine, theirs, strict=True)
        )


class _CheckedDrafter(EagleDrafter):
    """Takes features in the head's own dtype, and may pair them one token off."""

    def __init__(self, reading: Reading, device: torch.device) -> None:
        super().__init__(reading.head, DEPTH, 1, device)
        self._shifts = reading.shifts
        self._dtype = reading.head.fc.weight.dtype

    def begin(self) -> None:
        super().begin()
        self._before: int | None = None

    def extend(self, tokens: IntArray, features: Features) -> None:
        if self._shifts and len(tokens):
            first = int(tokens[0]) if self._before is None else self._before
            self._before = int(tokens[-1])
            tokens = np.concatenate([[first], tokens[:-1]])
        super().extend(tokens, features.to(self._dtype))


def measure(runtime: Any, reading: Reading) -> Drafted:
    """Decodes the first calibration questions; the target's residency is put back."""
    target: OffloadedTarget = runtime.target
    aux, residency = target.aux_layers, target.residency()
    drafter = _CheckedDrafter(reading, runtime.spec.device)
    decoder = Decoder(target, drafter, None, WholePool(DEPTH, "head_check"), runtime.clock())
    committed, cycles = [], []
    target.aux_layers = list(reading.aux_layers)
    try:
        for request in islice(runtime.spec.questions.requests(), QUESTIONS):
            records = [c.record for c in decoder.decode(replace(request, max_new_tokens=TOKENS))]
            committed.append(sum(record.committed_tokens for record in records[1:]))
            cycles.append(len(records) - 1)
    finally:
        target.aux_layers = aux
        target.restore(residency)
    return Drafted(tuple(committed), tuple(cycles))


# -- one flag that two trainers mean differently ---------------------------------------------------


def settle_feedback(runtime: Any) -> tuple[EagleHead, str]:
    """The head with the better reading of a flat file's `norm_output`, and a sentence that says so.

    Raises SpecfitError where neither is clearly better, or the weights are made up.
    """
    head: EagleHead = runtime.head
    if runtime.spec.config.model.source == "random":
        raise _undecided("a random target cannot tell which")
    found = {}
    for norm_output in (False, True):
        made = changed(head, norm_output=norm_output, feedback_unknown=False)
        found[norm_output] = made, measure(runtime, Reading("", made, head.config.aux_layer_ids))
    before, after = (found[flag][1] for flag in (False, True))
    figures = f"{before.per_cycle:.2f} committed per cycle before the norm, {after.per_cycle:.2f}"
    for better, worse, flag, word in ((before, after, False, "before"), (after, before, True, "after")):
        if better.beats(worse):
            sentence = (
                f"the head's norm_output is ambiguous: {figures} after it, so drafter.norm_feedback "
                f"is {word}"
            )
            return found[flag][0], sentence
    raise _undecided(f"{figures} after it decides nothing")


def _undecided(why: str) -> SpecfitError:
    return SpecfitError(
        "The draft head's flat config sets norm_output=true, and trainers differ in whether the "
        f"next step reads the state before or after that norm; {why}. Set "
        "drafter.norm_feedback=before (SpecForge before its change of 2026-09) or after."
    )


# -- every usual culprit ---------------------------------------------------------------------------


def changed(head: EagleHead, **fields: Any) -> EagleHead:
    """Another reading of the same weights, which are shared."""
    return with_tensors(head, replace(head.config, **fields), {})


def with_tensors(
    head: EagleHead, config: HeadConfig, tensors: dict[str, torch.Tensor]
) -> EagleHead:
    with torch.device("meta"):
        made = EagleHead(config)
    made.load_state_dict({**head.state_dict(), **tensors}, assign=True)
    return made.requires_grad_(False).eval()


def readings(runtime: Any) -> Iterator[Reading]:
    """The file as it is read, then with each usual culprit undone in turn."""
    head: EagleHead = runtime.head
    config, weights = head.config, runtime.loaded.model.state_dict()
    aux, layers = config.aux_layer_ids, runtime.loaded.geometry.layers
    yield Reading("as it is read", head, aux)
    for step, word in ((-1, "too high"), (1, "too low")):
        moved = tuple(layer + step for layer in aux)
        if min(moved) >= 0 and max(moved) < layers:
            yield Reading(f"auxiliary layers one {word}", head, moved)
    yield Reading("token shift: a feature goes with its own token", head, aux, shifts=True)
    flag = config.norm_before_residual
    other = changed(head, norm_before_residual=not flag)
    yield Reading(f"norm order: norm_before_residual is {str(not flag).lower()}", other, aux)
    word = "before" if config.norm_output else "after"
    other = changed(head, norm_output=not config.norm_output)
    yield Reading(f"feedback: drafter.norm_feedback is {word}", other, aux)
    bases = {*ROPE_BASES, _rope_base(runtime)} - {config.rope_theta}
    for base in sorted(bases):
        yield Reading(f"rope base: rope_theta is {base:g}", changed(head, rope_theta=base), aux)
    yield from _other_tensors(head, weights, aux)
    if head.fc.weight.dtype != torch.float32:
        wide = {n: t.float() for n, t in head.state_dict().items() if t.is_floating_point()}
        yield Reading("dtype: the head needs float32", with_tensors(head, config, wide), aux)


def _rope_base(runtime: Any) -> float:
    config = runtime.loaded.model.config
    rope = getattr(config, "rope_parameters", None) or {}
    return float(rope.get("rope_theta") or getattr(config, "rope_theta", ROPE_BASES[0]))


def _other_tensors(
    head: EagleHead, weights: dict[str, torch.Tensor], aux: tuple[int, ...]
) -> Iterator[Reading]:
    """The vocabulary map as absolute ids; the target's embedding and output head."""
    config, own = head.config, head.state_dict()
    offsets = own["d2t"] - torch.arange(len(own["d2t"]), device=own["d2t"].device)
    ids = own["d2t"]
    if bool((ids[1:] > ids[:-1]).all()) and 0 <= int(ids[0]) and int(ids[-1]) < config.vocab_size:
        yield Reading("d2t is absolute", with_tensors(head, config, {"d2t": offsets}), aux)
    dtype, target_ids = head.fc.weight.dtype, head.target_ids(torch.arange(len(ids)).to(ids.device))
    embedding = weights["model.embed_tokens.weight"]
    if embedding.shape == own["embed_tokens.weight"].shape:
        tensors = {"embed_tokens.weight": embedding.to(dtype)}
        made = with_tensors(head, config, tensors)
        yield Reading("embedding: the target's is meant", made, aux)
    if weights["lm_head.weight"].shape[1] == config.hidden_size:
        tensors = {"lm_head.weight": weights["lm_head.weight"][target_ids].to(dtype)}
        made = with_tensors(head, config, tensors)
        yield Reading("output head: the target's is meant", made, aux)


def check(runtime: Any) -> Iterator[str]:
    """The table, one reading per line as it is measured, and what it says."""
    yield f"draft head, {QUESTIONS} questions of {TOKENS} tokens, chains of {DEPTH}:"
    results: list[tuple[Reading, Drafted]] = []
    for reading in readings(runtime):
        results.append((reading, measure(runtime, reading)))
        yield f"  {results[-1][1].per_cycle:5.2f} committed per cycle  {reading.culprit}"
    yield verdict(results)


def verdict(results: Sequence[tuple[Reading, Drafted]]) -> str:
    (_, read), *others = results
    reading, best = max(others, key=lambda result: result[1].per_cycle)
    if best.beats(read):
        return (
            f"likely culprit: {reading.culprit} ({best.per_cycle:.2f} committed per cycle against "
            f"{read.per_cycle:.2f})"
        )
    return f"the head drafts best as it is read ({read.per_cycle:.2f} committed per cycle)"
