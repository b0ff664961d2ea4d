"""What route predictors are trained on, and that training learns what can be learned."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from specfit.base.types import PROBABILITY_ONE, ROOT, DraftTree, Request, Routes  # noqa: E402
from specfit.models.routes.predictor import DECAYS, PredictorShape, RoutePredictor  # noqa: E402
from specfit.models.routes.recent_use import RecentUse  # noqa: E402
from specfit.storage.recording.files import Recording, Shape  # noqa: E402
from specfit.storage.recording.requests import RecordedRequest, pools_of  # noqa: E402

SCRIPTS = Path(__file__).parents[2] / "scripts" / "train"
LAYERS, EXPERTS, TOP_K, HIDDEN, VOCABULARY = 2, 16, 3, 8, 30


@pytest.fixture(scope="module", autouse=True)
def routing() -> Any:
    sys.path.insert(0, str(SCRIPTS))
    yield
    sys.path.remove(str(SCRIPTS))


def routes_of(token: int) -> np.ndarray:
    """Any table: a token's experts."""
    rng = np.random.default_rng(token)
    return np.stack([rng.permutation(EXPERTS)[:TOP_K] for _ in range(LAYERS)])


def tree_of(rng: np.random.Generator) -> DraftTree:
    tree = DraftTree.empty()
    for parents in ([ROOT, ROOT], [0, 0, 1, 1], [3, 3, 5, 5]):
        probs = np.full(len(parents), PROBABILITY_ONE >> (1 + tree.levels))
        tree = tree.grown(rng.integers(1, VOCABULARY, len(parents)), np.array(parents), probs)
    return tree


def request_of(seed: int, positions: int = 6) -> RecordedRequest:
    rng = np.random.default_rng(seed)
    prompt, output = rng.integers(1, VOCABULARY, 5), rng.integers(1, VOCABULARY, positions + 1)
    trees = [tree_of(rng) for _ in range(positions)]
    atlases = [
        Routes(routes_of(int(root)), np.stack([routes_of(int(t)) for t in tree.tokens]))
        for root, tree in zip(output, trees, strict=False)
    ]
    features = [
        rng.normal(size=(len(np.unique(tree.parents)), HIDDEN)).astype(np.float16) for tree in trees
    ]
    request = Request(f"q{seed}", prompt, positions + 1, frozenset())
    routed = np.stack([routes_of(int(t)) for t in prompt]).astype(np.uint8)
    pools = pools_of(trees, atlases, output.tolist(), features)
    common = (seed, request.request_id, "digest", "ok", request, output, "length")
    return RecordedRequest(*common, prompt_routes=routed, pools=pools)


def recording_of(*seeds: int) -> Recording:
    shape = Shape(LAYERS, EXPERTS, TOP_K, HIDDEN, 1, VOCABULARY, 99, 1)
    requests = [request_of(seed) for seed in seeds]
    return Recording("r", {}, {}, shape, (), "a reader", requests, [])


def test_rows_are_what_a_run_would_read() -> None:
    from routing.samples import samples_of

    recordings = [recording_of(0, 1), recording_of(2)]
    found = samples_of(recordings)
    row = position = 0
    for one in (request for recording in recordings for request in recording.requests):
        assert one.pools is not None and one.pools.features is not None
        assert one.output_ids is not None and one.prompt_routes is not None
        recent, own = RecentUse(DECAYS, LAYERS, EXPERTS), 0
        recent.add(one.prompt_routes)
        for i in range(one.positions):
            tree, expanded = one.pools.tree(i), one.pools.expanded(i).tolist()
            parents = [ROOT, *tree.parents.tolist()]
            tokens = [int(one.output_ids[i]), *tree.tokens.tolist()]
            depths = [0, *tree.depths.tolist()]
            first = row
            for parent, token, depth in zip(parents, tokens, depths, strict=True):
                assert found.above[row] == first + (parent + 1)
                assert (found.tokens[row], found.depths[row]) == (token, depth)
                assert np.array_equal(found.routes[row], routes_of(token))
                feature = one.pools.features[own + expanded.index(parent)]
                assert np.array_equal(found.features[found.parent[row]], feature)
                assert found.position[row] == position
                prob = 1.0 if parent == ROOT and depth == 0 else None
                node = row - first - 1
                prob = prob or tree.path_probs[node] / PROBABILITY_ONE
                assert found.weights[row] == pytest.approx(max(prob, 0.1))
                assert np.allclose(found.uses[position], recent.use, atol=1e-3)
                row += 1
            recent.add(one.pools.atlas(i)[:1])
            own, position = own + len(expanded), position + 1
    assert row == len(found)


def test_training_learns_what_the_token_tells() -> None:
    """Routes are a table of tokens here, so nearly all of them can be named."""
    from routing.fit import Plan, Rows, look_at, train
    from routing.samples import samples_of

    embeddings = torch.from_numpy(np.random.default_rng(1).normal(size=(VOCABULARY, HIDDEN)))
    rows = Rows(samples_of([recording_of(*range(12))]), embeddings.float())
    held_out = Rows(samples_of([recording_of(20, 21)]), embeddings.float())
    shape = PredictorShape(HIDDEN, 32, 4, LAYERS, EXPERTS, TOP_K)
    said: list[str] = []
    plan = Plan(width=32, passes=40, batch=64, peak_rate=1e-2, looks=1)
    predictor, looks = train(shape, rows, held_out, plan, 1, said.append)
    assert len(said) == len(looks) > 10
    best = min(looks, key=lambda look: look.loss)
    again = look_at(predictor, held_out, best.step, best.rows)
    assert again.loss == pytest.approx(best.loss), "the weights of the best look are kept"
    assert best.recall > 0.9 > looks[0].recall > TOP_K / EXPERTS


def test_what_is_used_above_a_row() -> None:
    from routing.fit import Rows
    from routing.samples import samples_of

    samples = samples_of([recording_of(0)])
    rows = Rows(samples, torch.zeros(VOCABULARY, HIDDEN))
    used = rows.used_above(torch.arange(len(rows)), EXPERTS).numpy()
    for row in range(len(rows)):
        expected, at = np.zeros((LAYERS, EXPERTS)), row
        while samples.above[at] != at:
            at = samples.above[at]
            np.put_along_axis(expected, samples.routes[at].astype(np.int64), 1, axis=-1)
        assert np.array_equal(used[row], expected)
        assert used[row].any() == (samples.depths[row] > 0)


def test_chances_where_no_row_above_uses_the_expert() -> None:
    """A child that copies its parent's routes uses nothing new, however likely its experts are."""
    from routing.fit import Rows, fit_given
    from routing.samples import samples_of

    samples = samples_of([recording_of(*range(6))])
    for _ in range(3):  # three levels: children are given what their parents have by now
        samples = replace(samples, routes=samples.routes[samples.above])
    rows = Rows(samples, torch.zeros(VOCABULARY, HIDDEN))
    predictor = RoutePredictor(PredictorShape(HIDDEN, 8, 4, LAYERS, EXPERTS, TOP_K))
    fit_given(predictor, rows, passes=60, batch=64)
    every = torch.arange(len(rows))
    depths, above = torch.from_numpy(samples.depths), torch.from_numpy(samples.above)
    with torch.no_grad():
        logits = predictor(*rows.inputs(every))
        chances = predictor.if_new(logits, logits[above], depths).sigmoid()
    assert float(chances[depths > 0].mean()) < 0.1
    root = float(chances[depths == 0].mean())
    assert root == pytest.approx(TOP_K / EXPERTS, abs=0.05), "a root has no parent to copy"


def test_calibration_rows_and_evaluation_rows_are_in_nothing() -> None:
    """What the script asks for by default."""
    import route_predictor

    default = route_predictor.Requests()
    assert default.gsm8k <= 7473 - 300, "the last rows of GSM8K are kept out of all training"
    source = (SCRIPTS / "route_predictor.py").read_text() + "".join(
        path.read_text() for path in (SCRIPTS / "routing").glob("*.py")
    )
    assert '"evaluation"' not in source and '"calibration"' not in source
