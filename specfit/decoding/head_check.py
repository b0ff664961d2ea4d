"""Which reading of a draft head drafts best, on the target's own answers to a few questions.

A head that is read wrongly loads, runs and is right (greedy verification repairs every draft): it
only accepts little. The head is unrolled from every position of the answers, as in its training, so
all readings are compared on the same few hundred positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from specfit.base.types import SpecfitError
from specfit.decoding.decoder import Decoder
from specfit.models.drafter.head import EagleHead, HeadConfig
from specfit.models.drafter.training import unroll
from specfit.models.target.offloaded import OffloadedTarget
from specfit.selection.selectors import NoDraft

QUESTIONS, TOKENS, DEPTH = 3, 64, 4
CHECK_QUESTIONS = 12  # layers that differ by one differ little
CLEAR = 3.0
"""A reading wins where its paired advantage is this many standard errors."""
ROPE_BASES = (1e4, 5e5, 1e6, 5e6)
LEAST_LOG_PROB = -20.0  # of a token that the draft vocabulary lacks

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reading:
    """`culprit`: what would be wrong with the file or its use, if this reading drafts best."""

    culprit: str
    head: EagleHead
    aux_layers: tuple[int, ...]
    shifts: bool = False  # each feature with its own token instead of the next one


@dataclass(frozen=True, eq=False)
class Text:
    """A prompt and its greedy answer: tokens [L], and what entered each layer [L, H]."""

    tokens: torch.Tensor
    prompt_tokens: int
    hidden: dict[int, torch.Tensor]


@dataclass(frozen=True, eq=False)
class Drafted:
    """By position: log-probability of the next DEPTH tokens, and how many of them lead a chain."""

    log_probs: FloatArray
    accepted: FloatArray

    @property
    def per_step(self) -> float:
        """Committed tokens of a step that verifies a chain of DEPTH."""
        return 1.0 + float(self.accepted.mean())

    def beats(self, other: Drafted) -> bool:
        difference = self.log_probs - other.log_probs
        error = float(difference.std(ddof=1)) / len(difference) ** 0.5
        return self.per_step >= other.per_step and float(difference.mean()) > CLEAR * error


@torch.inference_mode()
def answers(runtime: Any, layers: Sequence[int], questions: int = QUESTIONS) -> list[Text]:
    """The first calibration questions, answered token by token; residency is put back."""
    target: OffloadedTarget = runtime.target
    aux, residency = target.aux_layers, target.residency()
    decoder = Decoder(target, None, None, NoDraft("ar_cache"), runtime.clock())
    texts = []
    try:
        for request in islice(runtime.spec.questions.requests(), questions):
            target.aux_layers = []
            cycles = decoder.decode(replace(request, max_new_tokens=TOKENS))
            said = [token for cycle in cycles for token in cycle.tokens]
            ids = np.concatenate([request.prompt_ids, said]).astype(np.int64)
            target.aux_layers = list(layers)
            target.begin()
            parts = target.prefill(ids).features.chunk(len(layers), dim=-1)
            tokens = torch.as_tensor(ids, device=runtime.spec.device)
            hidden = dict(zip(layers, parts, strict=True))
            texts.append(Text(tokens, len(request.prompt_ids), hidden))
    finally:
        target.aux_layers = aux
        target.begin()
        target.restore(residency)
    return texts


@torch.inference_mode()
def measure(reading: Reading, texts: Sequence[Text]) -> Drafted:
    parts = [_measure(reading, text) for text in texts]
    log_probs, accepted = (np.concatenate(part) for part in zip(*parts, strict=True))
    if len(log_probs) < 2:
        raise SpecfitError("the calibration questions' answers are too short to compare heads on")
    return Drafted(log_probs, accepted)


def _measure(reading: Reading, text: Text) -> tuple[FloatArray, FloatArray]:
    """Row t drafts tokens t + 2 .. t + 1 + DEPTH; its root, t + 1, is of the answer."""
    head, tokens = reading.head, text.tokens
    aux = torch.cat([text.hidden[layer] for layer in reading.aux_layers], dim=-1)
    seen = tokens.roll(1) if reading.shifts else tokens
    every = unroll(head, seen[None], aux[None].to(head.fc.weight.dtype), DEPTH)
    rows = torch.arange(text.prompt_tokens - 1, len(tokens) - 1 - DEPTH, device=tokens.device)
    said = head.target_ids(torch.arange(head.config.draft_vocab_size, device=tokens.device))
    place = torch.full((head.config.vocab_size,), -1, device=tokens.device)
    inside = (said >= 0) & (said < len(place))  # a wrong map may reach beyond
    place[said[inside]] = torch.arange(len(said), device=tokens.device)[inside]
    total = torch.zeros(len(rows), dtype=torch.float64, device=tokens.device)
    accepted, leads = torch.zeros_like(total), torch.ones(len(rows), device=tokens.device).bool()
    for step, logits in enumerate(every):
        true = tokens[rows + 2 + step]
        log_probs = logits[0, rows].float().log_softmax(-1)
        found = log_probs.gather(-1, place[true].clamp(min=0)[:, None])[:, 0]
        found = found.nan_to_num(LEAST_LOG_PROB)  # of a head that overflows
        total += torch.where(place[true] >= 0, found, LEAST_LOG_PROB).clamp(min=LEAST_LOG_PROB)
        leads &= said[log_probs.argmax(-1)] == true
        accepted += leads
    return total.cpu().numpy(), accepted.cpu().numpy()


# -- one flag that two trainers mean differently ---------------------------------------------------


def settle_feedback(runtime: Any) -> tuple[EagleHead, str]:
    """The head with the better reading of a flat file's `norm_output`, and a sentence that says so.

    Raises SpecfitError where neither is clearly better, or the weights are made up.
    """
    head: EagleHead = runtime.head
    if runtime.spec.config.model.source == "random":
        raise _undecided("a random target cannot tell which")
    aux = head.config.aux_layer_ids
    texts, results = answers(runtime, aux), []
    for norm_output in (False, True):
        made = changed(head, norm_output=norm_output, feedback_unknown=False)
        results.append((made, measure(Reading("", made, aux), texts)))
    (_, before), (_, after) = results
    figures = (
        f"{before.per_step:.2f} committed per step if the next one reads the state before the "
        f"norm, {after.per_step:.2f} if after"
    )
    said = (
        f"the draft head's norm_output is ambiguous; measured: {figures}; drafter.norm_feedback is"
    )
    if before.beats(after):
        return results[0][0], f"{said} before"
    if after.beats(before):
        return results[1][0], f"{said} after"
    raise _undecided(f"{figures}, which decides nothing")


def _undecided(why: str) -> SpecfitError:
    return SpecfitError(
        "The draft head's flat config sets norm_output=true, and trainers differ in whether the "
        f"next step reads the state before or after that norm; {why}. Set "
        "drafter.norm_feedback=before or drafter.norm_feedback=after."
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
    return float(rope.get("rope_theta") or getattr(config, "rope_theta", None) or ROPE_BASES[0])


def _other_tensors(
    head: EagleHead, weights: dict[str, torch.Tensor], aux: tuple[int, ...]
) -> Iterator[Reading]:
    """The vocabulary map as absolute ids; the target's embedding and output head."""
    config, own = head.config, head.state_dict()
    offsets = own["d2t"] - torch.arange(len(own["d2t"]), device=own["d2t"].device)
    ids = own["d2t"]
    if bool((ids[1:] > ids[:-1]).all()) and int(ids[0]) >= 0 and int(ids[-1]) < config.vocab_size:
        yield Reading("d2t is absolute", with_tensors(head, config, {"d2t": offsets}), aux)
    dtype, target_ids = head.fc.weight.dtype, head.target_ids(torch.arange(len(ids)).to(ids.device))
    embedding = weights["model.embed_tokens.weight"]
    if embedding.shape == own["embed_tokens.weight"].shape:
        tensors = {"embed_tokens.weight": embedding.to(dtype)}
        made = with_tensors(head, config, tensors)
        yield Reading("embedding: the target's is meant", made, aux)
    fits = int(target_ids.min()) >= 0 and int(target_ids.max()) < config.vocab_size
    if fits and weights["lm_head.weight"].shape[1] == config.hidden_size:
        tensors = {"lm_head.weight": weights["lm_head.weight"][target_ids].to(dtype)}
        made = with_tensors(head, config, tensors)
        yield Reading("output head: the target's is meant", made, aux)


def check(runtime: Any) -> Iterator[str]:
    """The table, one reading per line as it is measured, and what it says."""
    tried = list(readings(runtime))
    layers = sorted({layer for reading in tried for layer in reading.aux_layers})
    texts = answers(runtime, layers, CHECK_QUESTIONS)
    results = [(reading, measure(reading, texts)) for reading in tried]
    rows = len(results[0][1].accepted)
    yield f"draft head, {len(texts)} questions, {rows} positions, chains of {DEPTH}:"
    yield "  committed per step   log-probability of the chain"
    for reading, drafted in results:
        yield f"  {drafted.per_step:18.2f}   {drafted.log_probs.mean():8.2f}  {reading.culprit}"
    yield verdict(results)


def verdict(results: Sequence[tuple[Reading, Drafted]]) -> str:
    (_, read), *others = results
    reading, best = max(others, key=lambda result: float(result[1].log_probs.mean()))
    if best.beats(read):
        return (
            f"likely culprit: {reading.culprit} ({best.per_step:.2f} committed per step against "
            f"{read.per_step:.2f})"
        )
    return f"the head drafts best as it is read ({read.per_step:.2f} committed per step)"
