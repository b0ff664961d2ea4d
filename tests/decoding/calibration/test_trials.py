"""Calibration probes: what they cover, that they leave nothing behind, that the fit is exact."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest
import torch

from specfit.base.types import DraftTree, Request, Selection, SpecfitError
from specfit.decoding.calibration.trials import TreeTrial, TreeTrials
from specfit.decoding.cycle import DecodeState
from specfit.decoding.decoder import Decoder
from specfit.hardware.clock import ModelledClock
from specfit.hardware.profile import Billing, Profile
from specfit.models.routes.atlas import AtlasRoutes
from specfit.selection.fit import fit, leave_one_out
from specfit.selection.selectors import NoDraft
from tests.fakes.table_model import (
    EXPERT_BYTES,
    EXPERTS,
    LAYERS,
    ScriptedDrafter,
    ScriptedTarget,
    chain,
)
from tests.fakes.tiny_model import EXPERTS as PAIR_EXPERTS
from tests.fakes.tiny_model import Pair

K, DEPTH, SCALE = 7, 3, 6
TEXT = tuple(range(100, 180))
GUESSES = {
    token: (token + 1, 200 + token) if token % 3 else (200 + token, token + 1) for token in TEXT
}
PROFILE = Profile("test", link_gbps=2.0, fixed_ms=1.2, draft_level_ms=0.3, selection_ms=0.2)


def questions(*starts: int, new_tokens: int = 64) -> list[Request]:
    """A prompt whose answer is the text from `start` on."""
    return [
        Request(f"q{start}", np.array([50 + start, TEXT[start]]), new_tokens, frozenset({TEXT[-1]}))
        for start in starts
    ]


class Bench:
    """A prober over scripts, billed as a model of six times the layers."""

    def __init__(self, slots: int) -> None:
        self.target = ScriptedTarget(chain(*TEXT), slots)
        self.drafter = ScriptedDrafter(GUESSES, DEPTH)
        self.clock = ModelledClock(
            PROFILE, Billing("large", SCALE * LAYERS, 4000, LAYERS, EXPERT_BYTES)
        )
        routes = AtlasRoutes(self.target)
        self.prober = TreeTrials(self.target, self.drafter, routes, self.clock, EXPERTS, K)

    def probes(self, *starts: int) -> list[TreeTrial]:
        return self.prober.run(iter(questions(*starts)))


@pytest.mark.parametrize("slots", [0, 5])
def test_nine_states_of_sixteen_probes(slots: int) -> None:
    probes = Bench(slots).probes(0, 3, 7, 9)
    assert len(probes) == 144
    assert len({probe.state for probe in probes}) == 9
    assert {probe.request_id for probe in probes} == {"q0", "q3", "q7"}, "three questions suffice"
    assert {probe.position for probe in probes} == {8, 24, 48}
    each = Counter((probe.state, probe.family, probe.size) for probe in probes)
    assert set(each.values()) == {1}
    assert {(family, size) for _, family, size in each} == {
        (family, size) for family in ("probability", "union") for size in range(K + 1)
    }


def test_the_union_family_never_demands_more() -> None:
    probes = Bench(5).probes(0, 3, 7)
    by_family = {(p.state, p.size, p.family): p.demand for p in probes}
    pairs = [
        (by_family[state, size, "union"], by_family[state, size, "probability"])
        for state, size, family in by_family
        if family == "union"
    ]
    assert all(union <= probable for union, probable in pairs)
    assert any(union < probable for union, probable in pairs)


def test_equal_probes_of_one_state_take_equal_time() -> None:
    probes = Bench(5).probes(0, 3, 7)
    empty = [probe for probe in probes if probe.size == 0]
    assert len(empty) == 18, "no nodes is one tree, probed twice"
    for state in {probe.state for probe in empty}:
        assert len({(p.demand, p.cycle_ns) for p in empty if p.state == state}) == 1
    assert probes == Bench(5).probes(0, 3, 7)


@pytest.mark.parametrize("slots", [0, 5])
def test_a_walk_with_probes_is_the_walk_without(slots: int) -> None:
    """Residency with recency, KV and head cache after three questions probed nine times."""
    probed, plain = Bench(slots), Bench(slots)
    probed.probes(0, 3, 7)
    walker = Decoder(plain.target, None, None, NoDraft("ar_cache"), plain.clock)
    for request in questions(0, 3, 7):
        said = [t for cycle in islice(walker.decode(request), 48) for t in cycle.tokens]
    assert probed.target.kv == plain.target.kv
    here, there = probed.target.residency(), plain.target.residency()
    assert all(np.array_equal(here[name], there[name]) for name in here | there)
    text = [*request.prompt_ids.tolist(), *said]
    assert said == list(TEXT[8 : 8 + 48])
    # the head is a cycle behind: the next extension brings the newest token
    assert probed.drafter.rows == [(token, before) for before, token in pairwise(text[:-1])]


def test_an_answer_too_short_is_no_question() -> None:
    probes = Bench(5).probes(40, 0, 3, 7)  # q40 stops after 39 tokens, after two of its positions
    assert len(probes) == 144 and "q40@8" not in {probe.state for probe in probes}
    with pytest.raises(SpecfitError, match=r"3 questions whose answers exceed 48 tokens"):
        Bench(5).probes(0, 3, 40)


@pytest.mark.parametrize("slots", [0, 5, 14])
def test_probes_are_those_of_every_question_walked_and_probed(slots: int) -> None:
    """Answers that are too short warm the cache, whether or not their states are probed, and
    whether or not they are walked again."""
    starts = (41, 60, 0, 40, 3, 45, 50, 7)
    plain, again = Bench(slots), Bench(slots)
    wanted = [probe for one in questions(*starts) for probe in plain.prober._question(one)]
    assert len(wanted) == 144
    assert Bench(slots).probes(*starts) == wanted
    found = Bench(slots).prober.starts(iter(questions(*starts)))
    assert [one.request.request_id for one in found] == ["q0", "q3", "q7"]
    assert again.prober.run_from(found) == again.prober.run_from(found) == wanted
    cold = [replace(one, residency=Bench(slots).target.residency()) for one in found]
    assert slots < 14 or again.prober.run_from(cold) != wanted, "what a question finds counts"
    with pytest.raises(SpecfitError, match=r"3 questions whose answers exceed 48 tokens"):
        again.prober.run_from(found[:2])


def test_without_slots_the_fit_finds_the_modelled_constants_exactly() -> None:
    probes = Bench(0).probes(0, 3, 7)
    sizes, demands, times = (
        [getattr(probe, name) for probe in probes] for name in ("size", "demand", "cycle_ns")
    )
    model = fit(sizes, demands, times, K)
    for probe in probes:
        predicted = model.predict_ns(probe.size, probe.demand)
        assert abs(predicted - probe.cycle_ns) < 1e-6 * probe.cycle_ns
    # A copy of 4000 bytes at 2 GB/s, once for each of the layers it stands for.
    assert model.expert_ns == pytest.approx(SCALE * 2000, rel=1e-6)
    # Fixed and per-node time, three levels whatever the tree, selection once.
    constants = [1.2e6 + 0.6e6 * k + 3 * 0.3e6 + 0.2e6 for k in range(K + 1)]
    assert model.intercepts_ns == pytest.approx(constants, rel=1e-6)
    states = [probe.state for probe in probes]
    assert leave_one_out(states, sizes, demands, times, K).relative.max() < 1e-6


def test_with_a_cache_time_is_no_function_of_size_and_demand() -> None:
    """Else the test above would pass whatever the slots."""
    probes = Bench(5).probes(0, 3, 7)
    times: dict[tuple[int, int], set[int]] = {}
    for probe in probes:
        times.setdefault((probe.size, probe.demand), set()).add(probe.cycle_ns)
    assert max(map(len, times.values())) > 1


# -- on tensors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", [0, 6])
def test_probes_of_a_state_leave_the_real_machine_untouched(pair: Pair, slots: int) -> None:
    """A probed and an unprobed twin give one next tree, one next forward, bit for bit."""

    def next_cycle(probe: bool) -> tuple[DraftTree, torch.Tensor, list[list[int]], list[int]]:
        target, drafter = pair.target(slots), pair.drafter(max_depth=3)
        clock = pair.clock()
        prober = TreeTrials(target, drafter, AtlasRoutes(target), clock, PAIR_EXPERTS, 3)
        session = DecodeState(pair.request(2, 30))
        prober._prober.prefill(session)
        if probe:
            before = [*session.output_ids], target.length, drafter.length, target.residency()
            assert len(prober._state(session)) == 8
            assert (session.output_ids, target.length, drafter.length) == before[:3]
            after = target.residency()
            assert all(np.array_equal(before[3][name], after[name]) for name in after)
        drafter.extend(np.asarray(session.fresh_tokens), session.fresh_features)
        tree = drafter.grow(drafter.grow(DraftTree.empty()))
        verified = target.verify(session.root, tree, Selection((0, 1, 2)))
        counts = [verified.trace.hits.tolist(), verified.trace.misses.tolist()]
        return tree, verified.features, counts, verified.tokens.tolist()

    (tree, features, *rest), (twin, twin_features, *twin_rest) = map(next_cycle, (True, False))
    assert np.array_equal(tree.tokens, twin.tokens)
    assert np.array_equal(tree.path_probs, twin.path_probs)
    assert torch.equal(features, twin_features)
    assert rest == twin_rest
