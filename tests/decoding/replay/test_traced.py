"""Real routes under recorded trees: where each node's routes come from, read back from ids that
name their place in the trace."""

from __future__ import annotations

import numpy as np
import pytest

from specfit.base.config import from_hydra
from specfit.base.types import SpecfitError
from specfit.decoding.replay.acceptance import (
    LEAST,
    MOST,
    Draws,
    draw_pools,
    mean_committed,
    with_acceptance,
)
from specfit.decoding.replay.traced import GRAFTINGS, Graft, grafted, traced_recording
from specfit.decoding.resolve import resolve
from specfit.storage.foreign_traces import RoutingTrace
from specfit.storage.recording.files import Shape, read_recording, write_recording
from specfit.workflows.hydra_cli import compose
from specfit.workflows.recording.tracing import traced
from tests.fakes.table_model import decode, recording, replayed, requests, selectors

SIDE = 16
PLACES = np.arange(SIDE * SIDE)
SEQUENCE = np.stack([PLACES // SIDE, PLACES % SIDE], axis=1)[:, :, None].astype(np.int16)
TRACE = RoutingTrace("t.npz", (SEQUENCE, SEQUENCE[:200]), SIDE)


@pytest.fixture(scope="module")
def donor():  # type: ignore[no-untyped-def]
    return recording(requests(0, 10, 20))


def place(routes: np.ndarray) -> np.ndarray:
    """[.., 2, 1] -> the place that the ids name."""
    return routes[..., 0, 0].astype(np.int64) * SIDE + routes[..., 1, 0]


def walked(donor, name, seed=0):  # type: ignore[no-untyped-def]
    found, questions = grafted(donor, TRACE.sequences, Graft(name, seed))
    return [*found, *questions]


def nodes_of(one):  # type: ignore[no-untyped-def]
    """(position, node, parent's place, own place in the text, its place) of every node."""
    pools = one.pools
    text = [int(place(pools.atlas(i)[0])) for i in range(len(pools))]
    for i in range(len(pools)):
        places, tree = place(pools.atlas(i)), pools.tree(i)
        for node in range(len(tree)):
            ahead = i + int(tree.depths[node])
            own = text[ahead] if ahead < len(text) else None
            yield i, node, int(places[tree.parents[node] + 1]), own, int(places[node + 1])


@pytest.mark.parametrize("name", GRAFTINGS)
def test_text_runs_on_inside_one_sequence(donor, name) -> None:
    for one in walked(donor, name):
        prompt = place(one.prompt_routes)
        assert np.array_equal(np.diff(prompt), np.ones(len(prompt) - 1))
        roots = np.array([place(one.pools.atlas(i)[0]) for i in range(len(one.pools))])
        steps = np.diff(np.append(prompt[-1], roots))
        width = GRAFTINGS[name][1]
        most = width if name.startswith("walk") else 1
        assert steps.min() >= 1 and steps.max() <= most
        assert place(one.pools.routes).max() < len(PLACES)


@pytest.mark.parametrize("name", ["within_8", "within_64"])
def test_rejected_nodes_are_near_and_accepted_ones_are_the_text(donor, name) -> None:
    width, seen = GRAFTINGS[name][1], 0
    for one in walked(donor, name):
        for i, node, _, own, at in nodes_of(one):
            if own is None:
                continue
            if one.pools.accepted[one.pools.nodes(i)][node]:
                assert at == own
            else:
                assert 1 <= abs(at - own) <= width
                seen += abs(at - own) > width // 2
    assert seen, "draws use the whole width"


@pytest.mark.parametrize("name", ["walk_2", "walk_4"])
def test_every_node_of_a_walk_follows_its_parent(donor, name) -> None:
    steps = [at - parent for one in walked(donor, name) for *_, parent, _, at in nodes_of(one)]
    assert min(steps) == 1 and max(steps) == GRAFTINGS[name][1]


def test_rejected_nodes_of_equal_token_share_a_route(donor) -> None:
    for one in walked(donor, "token_8"):
        for i in range(len(one.pools)):
            tree, places = one.pools.tree(i), place(one.pools.atlas(i))[1:]
            rejected = ~one.pools.accepted[one.pools.nodes(i)]
            for token in np.unique(tree.tokens[rejected]):
                assert len(set(places[rejected & (tree.tokens == token)])) == 1


def test_a_node_of_two_pools_has_one_route(donor) -> None:
    """Of position i below its accepted child, and of position i + 1 below its root."""
    compared = 0
    for one in walked(donor, "walk_4"):
        pools = one.pools
        for i in range(len(pools) - 1):
            first = np.flatnonzero(pools.accepted[pools.nodes(i)] & (pools.tree(i).depths == 1))
            if len(first) == 0:
                continue
            below = np.flatnonzero(pools.tree(i).parents == first[0])
            again = np.flatnonzero(pools.tree(i + 1).parents == -1)
            here = dict(
                zip(pools.tree(i).tokens[below], place(pools.atlas(i))[1:][below], strict=True)
            )
            there = pools.tree(i + 1).tokens[again], place(pools.atlas(i + 1))[1:][again]
            for token, at in zip(*there, strict=True):
                if token in here:
                    assert here[token] == at
                    compared += 1
    assert compared


def test_seeds_are_different_draws_and_the_same_again(donor) -> None:
    first, again, other = (walked(donor, "walk_4", seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(first.pools.routes, again.pools.routes)
    assert not np.array_equal(first.pools.routes, other.pools.routes)


def test_a_request_longer_than_every_sequence_is_refused(donor) -> None:
    with pytest.raises(SpecfitError, match=r"needs the routes of .* use shorter requests"):
        grafted(donor, [SEQUENCE[:20]], Graft("within_8"))
    with pytest.raises(SpecfitError, match="use one of within_8"):
        Graft("near")


def half(donor, name="walk_2", acceptance=None):  # type: ignore[no-untyped-def]
    shape = Shape(2, SIDE, 1, 1, 1, 400, 512, 1000)
    return traced_recording(donor, TRACE, "digest", Graft(name), {}, shape, acceptance)


def test_it_is_a_recording_like_any_other(donor, tmp_path) -> None:
    made = half(donor)
    write_recording(tmp_path / made.recording_id, made)
    read = read_recording(tmp_path / made.recording_id)
    assert read.identity["target"] != donor.identity["target"]
    assert read.notes["half_real"].startswith("half-real: routes are real (t.npz)")
    for a, b in zip(made.requests, read.requests, strict=True):
        assert np.array_equal(a.pools.routes, b.pools.routes)
    ids = {half(donor, name).recording_id for name in GRAFTINGS} | {
        half(donor, acceptance=2.0).recording_id
    }
    assert len(ids) == len(GRAFTINGS) + 1


@pytest.mark.parametrize("acceptance", [None, 2.5])
@pytest.mark.parametrize("name", selectors())
def test_every_selector_commits_the_recorded_ids(donor, name, acceptance) -> None:
    made = half(donor, acceptance=acceptance).requests
    asked = [one.request for one in made]
    decoder = replayed(made, selectors()[name], 4, None, None)
    committed = [t for cycle in decode(decoder, asked) for t in cycle.tokens]
    assert committed == [int(t) for one in made for t in one.output_ids]


# -- acceptance as a dial --------------------------------------------------------------------------


def test_chances_are_true() -> None:
    """Of nodes whose parent is accepted, the share accepted is their chance."""
    probs, parents, accepted = draw_pools(Draws.of(20_000, np.random.default_rng(0)), 0.6)
    first = accepted[:, :2].mean(axis=0), probs[:, :2].mean(axis=0)
    assert np.allclose(*first, atol=0.01)
    assert np.isclose(accepted.sum(axis=1).mean(), probs.sum(axis=1).mean(), rtol=0.01)
    above = np.where(parents < 0, True, np.take_along_axis(accepted, np.maximum(parents, 0), 1))
    assert not bool((accepted & ~above).any()), "below an accepted parent only"


def test_committed_rises_with_the_dial(donor) -> None:
    draws = Draws.of(4000, np.random.default_rng(1))
    means = [mean_committed(draws, m) for m in (0.1, 0.3, 0.5, 0.7, 0.9)]
    assert means == sorted(means)
    assert mean_committed(draws, 0.0) < LEAST and mean_committed(draws, 1.0) > MOST, "all in reach"
    for committed in (1.3, 2.3, 4.5):
        one = with_acceptance(donor, committed, 0).requests[0]
        assert one.pools.depths.max() == 5 and len(one.pools.tree(0)) == 18
    with pytest.raises(SpecfitError, match=r"use 1.2 to 5"):
        with_acceptance(donor, 5.5, 0)


# -- on the command line ---------------------------------------------------------------------------


def test_the_model_only_replays() -> None:
    config = from_hydra(compose(["model=qwen3-30b-a3b-traced"]))
    with pytest.raises(SpecfitError, match="only replays"):
        resolve(config)


def test_routes_without_weights_have_no_format(donor) -> None:  # type: ignore[no-untyped-def]
    config = from_hydra(compose(["model=qwen3-30b-a3b-traced", "model.format=fp8"]))
    with pytest.raises(SpecfitError, match=r"nothing to store as model\.format=fp8; bill"):
        traced(config, donor)


def test_a_trace_is_named_by_record_from() -> None:
    config = from_hydra(compose(["record.from=a/trace.npz", "record.experts=64"]))
    assert config.record.source == "a/trace.npz" and config.record.experts == 64
    with pytest.raises(SpecfitError, match=r"model.graft is for model=qwen3-30b-a3b-traced"):
        from_hydra(compose(["model.graft=walk_2"]))
