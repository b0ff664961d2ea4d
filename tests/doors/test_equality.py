"""Invariant 1: every selector, cache size and route source says what the target itself says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import specfit
from specfit.base.interfaces import RouteSource, Selector
from specfit.base.types import Request
from specfit.decoding.decoder import Decoder
from specfit.models.routes.atlas import AtlasRoutes
from specfit.models.routes.noisy import NoisyRoutes
from specfit.models.target.offloaded import OffloadedTarget
from specfit.selection.cost import CostModel
from specfit.selection.registry import SelectorArgs, selector_spec
from tests.fakes.tiny_model import EXPERTS, Pair, generate

NEAR_TIE = 1e-4
COST = CostModel(1e7 + 6e5 * np.arange(8), 4e4)
"""Made up, but of the modelled clock's proportions: a node 0.6 ms, an expert 0.04 ms."""

SELECTORS = ("ar", "ar_cache", "eagle3", "eagle3_cache", "specfit")
SLOTS = {"ar": (0,), "eagle3": (0,)}
EVERY = [
    (name, slots, routes, drafts)
    for name in SELECTORS
    for slots in SLOTS.get(name, (0, 5, EXPERTS))
    for routes in (("atlas", "noisy") if name == "specfit" else ("none",))
    for drafts in (("none",) if name.startswith("ar") else ("oracle", "head"))
]
QUICK = [
    (name, slots, routes, drafts)
    for name, slots, routes, drafts in EVERY
    if drafts != "head" and (routes != "noisy" or slots == 5)
]


def build(
    pair: Pair, name: str, slots: int, routes: str, drafter: Any, cost: CostModel = COST
) -> Decoder:
    selector = selector_named(name, EXPERTS, cost)
    target = pair.target(slots)
    source = route_source(routes, target, EXPERTS) if selector.reads_routes else None
    return Decoder(target, drafter if selector.drafts else None, source, selector, pair.clock())


def selector_named(name: str, experts: int, cost: CostModel) -> Selector:
    return selector_spec(name).make(SelectorArgs(name, 7, name == "specfit", experts, cost))


def route_source(name: str, target: OffloadedTarget, experts: int) -> RouteSource:
    atlas = AtlasRoutes(target)
    return atlas if name == "atlas" else NoisyRoutes(atlas, experts, accuracy=0.4, seed=0)


def said(decoder: Decoder, request: Request) -> tuple[list[int], int]:
    """The ids, and how many of them were drafted."""
    cycles = list(decoder.decode(request))
    ids = [token for cycle in cycles for token in cycle.tokens]
    return ids, sum(cycle.record.accepted_tokens for cycle in cycles)


def must_equal(ours: list[int], theirs: list[int], model: Any, prompt: np.ndarray) -> None:
    """Exact. A mismatch on a near-tie of the target is named as one, and still fails."""
    if ours == theirs:
        return
    pairs = zip(ours, theirs, strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(ours), len(theirs)))
    with torch.inference_mode():
        text = torch.as_tensor([[*prompt.tolist(), *theirs[:at]]])
        best = model(text, use_cache=False).logits[0, -1].topk(2)
    margin = float(best.values[0] - best.values[1])
    kind = "a near-tie of the target" if margin < NEAR_TIE else "a wrong token"
    pytest.fail(
        f"{kind} at new token {at}: {ours[at : at + 3]} for {theirs[at : at + 3]}, "
        f"top two {best.indices.tolist()}, margin {margin:.2e}"
    )


@pytest.mark.parametrize(("name", "slots", "routes", "drafts"), QUICK)
def test_ids_are_those_of_generate(
    pair: Pair, name: str, slots: int, routes: str, drafts: str
) -> None:
    accepted = check(pair, [0, 2], 14, name, slots, routes, drafts)
    assert drafts == "none" or accepted > 6, "the test needs paths that are accepted"


@pytest.mark.parametrize("name", ["eagle3_cache", "specfit"])
def test_ids_with_the_real_head_are_those_of_generate(pair: Pair, name: str) -> None:
    check(pair, [0], 8, name, 5, "atlas", "head")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "slots", "routes", "drafts"), EVERY)
def test_ids_of_longer_texts_are_those_of_generate(
    pair: Pair, name: str, slots: int, routes: str, drafts: str
) -> None:
    check(pair, range(len(pair.prompts)), 40, name, slots, routes, drafts)


def check(
    pair: Pair,
    indices: Sequence[int],
    new_tokens: int,
    name: str,
    slots: int,
    routes: str,
    drafts: str,
) -> int:
    """Requests one after the other, the expert cache keeping its contents; accepted drafts."""
    drafter: Any = pair.drafter()
    if drafts == "oracle":
        drafter = pair.oracle(indices, new_tokens + 8)
    decoder, accepted = build(pair, name, slots, routes, drafter), 0
    for index in indices:
        ids, drafted = said(decoder, pair.request(index, new_tokens))
        must_equal(ids, pair.greedy(index, new_tokens), pair.plain, pair.prompts[index])
        accepted += drafted
    return accepted


def test_some_text_ends_by_a_stop_token_and_some_by_length(pair: Pair) -> None:
    texts = [pair.greedy(index, 14) for index in (0, 2)]
    assert {text[-1] in pair.stop_ids for text in texts} == {True, False}, "else stops go untested"
    assert min(len(set(text)) for text in texts) > 6, "nor may a text repeat one token"


def test_ids_of_a_chunked_prefill_are_those_of_generate(pair: Pair) -> None:
    target = pair.target(5, chunk=7)
    decoder = Decoder(target, None, None, selector_named("ar_cache", EXPERTS, COST), pair.clock())
    ids, _ = said(decoder, pair.request(2, 8))
    must_equal(ids, pair.greedy(2, 8), pair.plain, pair.prompts[2])


@pytest.mark.parametrize("name", ["ar_cache", "eagle3_cache", "specfit"])
def test_a_cache_that_holds_all_moves_each_expert_once(pair: Pair, name: str) -> None:
    """Ids would be right even of a cache that moved too much; counters would not."""
    decoder = build(pair, name, EXPERTS, "atlas", pair.oracle([2], 18))
    cycles = list(decoder.decode(pair.request(2, 10)))
    moved = sum(cycle.record.transferred_experts for cycle in cycles)
    state = decoder.target.residency()["expert_in"]
    assert moved == int((state >= 0).sum())
    assert all(cycle.record.evicted_experts == 0 for cycle in cycles)


# -- the pair that is shipped ----------------------------------------------------------------------

EMBEDDED = Path(specfit.__file__).parent / "weights" / "embedded"


@pytest.fixture(scope="module")
def plain_embedded() -> Any:
    """The shipped target as plain transformers reads it, in fp32."""
    for part in ("target", "drafter"):
        if not (EMBEDDED / part / "config.json").is_file():
            pytest.skip(f"no trained weights at {EMBEDDED / part} yet")
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(EMBEDDED / "target", dtype=torch.float32).eval()


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["embedded_gsm8k", "embedded_news"])
def test_ids_of_the_shipped_pair_are_those_of_generate(plain_embedded: Any, workload: str) -> None:
    """Built as `python -m specfit.run` builds it, but for the cost model, which is made up."""
    from specfit.base.config import from_hydra
    from specfit.decoding.factory import build_decoder, build_selector
    from specfit.decoding.live import build_runtime
    from specfit.decoding.resolve import resolve
    from specfit.workflows.hydra_cli import compose

    common = [f"dataset={workload}", "limit=3", "max_new_tokens=64"]
    common += ["device=cpu", "gpu.clock=modelled"]
    expected: dict[str, list[int]] = {}
    for name in SELECTORS:
        for slots in ("12", "all"):
            config = compose([*common, f"selector={name}", f"cache_slots={slots}"])
            spec = resolve(from_hydra(config))
            runtime = build_runtime(spec, spec.slots, spec.kind.drafts)
            selector = build_selector(spec, COST)
            decoder = build_decoder(spec, runtime, selector, runtime.clock())
            for request in map(spec.workload.request, range(3)):
                key, prompt = request.request_id, request.prompt_ids
                if key not in expected:
                    expected[key] = generate(plain_embedded, prompt, request.max_new_tokens)
                must_equal(said(decoder, request)[0], expected[key], plain_embedded, prompt)
    assert len(expected) == 3
