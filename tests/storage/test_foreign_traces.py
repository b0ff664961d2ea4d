"""Traces of other engines: three formats, and one sentence for each that is bad."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from specfit.base.paths import PACKAGE
from specfit.base.types import SpecfitError
from specfit.storage.foreign_traces import ABSENT, layer_growth, read_trace

SHIPPED = PACKAGE / "data" / "traces"


def drawn(tokens: int, layers: int, k: int, experts: int, seed: int = 0) -> np.ndarray:
    """Rows that keep all but one expert of the row before, as text does."""
    rng = np.random.default_rng(seed)
    ids = np.empty((tokens, layers, k), dtype=np.int64)
    row = np.stack([rng.permutation(experts)[:k] for _ in range(layers)])
    for token in range(tokens):
        for layer in range(layers):
            others = np.setdiff1d(np.arange(experts), row[layer])
            row[layer, rng.integers(k)] = rng.choice(others)
        ids[token] = row
    return ids


def route_csv(path: Path, ids: np.ndarray, prompt: int, sizes: list[int], experts: int) -> None:
    lines = ["# route_trace v1", f"# model=m n_layer={ids.shape[1]} n_expert={experts}"]
    lines += [f"# layer={layer} expert_bytes={size}" for layer, size in enumerate(sizes)]
    lines.append("turn,phase,step,layer,slot,expert,weight,residency,expert_bytes")
    for (token, layer, slot), expert in np.ndenumerate(ids):
        if expert != ABSENT:
            phase = int(token >= prompt)
            lines.append(f"0,{phase},{token},{layer},{slot},{expert},0.1,0,0")
    path.write_text("\n".join(lines) + "\n")


def test_a_route_csv_is_read_as_it_was_written(tmp_path):
    ids = drawn(20, 3, 2, 16)
    ids[:4, -1] = ABSENT  # prompt tokens whose last layer nothing reads
    route_csv(tmp_path / "t.route.csv", ids, 5, [100, 90, 100], 16)
    trace = read_trace(tmp_path / "t.route.csv")
    assert (trace.layers, trace.top_k, trace.experts) == (3, 2, 16)
    assert trace.prompt_tokens == (5,) and trace.expert_bytes.tolist() == [100, 90, 100]
    assert np.array_equal(trace.sequences[0], ids)
    assert [len(one) for one in trace.passes()] == [5] + [1] * 15
    assert np.array_equal(trace.complete()[0], ids[4:])


def test_arrays_and_lines_hold_the_same_routes(tmp_path):
    ids = drawn(20, 3, 2, 16)
    np.savez(tmp_path / "a.npz", routed_experts=ids.astype(np.uint8))
    rows = [f"{t},{layer},{expert}" for (t, layer, _), expert in np.ndenumerate(ids)]
    with gzip.open(tmp_path / "l.csv.gz", "wt") as file:
        file.write("token,layer,expert\n" + "\n".join(rows) + "\n")
    for name in ("a.npz", "l.csv.gz"):
        trace = read_trace(tmp_path / name, experts=16)
        assert np.array_equal(trace.sequences[0], ids), name


def test_several_sequences_stay_apart(tmp_path):
    ids = np.stack([drawn(20, 3, 2, 16, seed) for seed in (1, 2)])
    np.savez(tmp_path / "a.npz", routed_experts=ids, experts=16)
    trace = read_trace(tmp_path / "a.npz")
    assert len(trace.sequences) == 2 and trace.tokens == 40


def changed(**changes: int) -> np.ndarray:
    ids = drawn(40, 6, 4, 32)
    for where, value in changes.items():
        ids[10, 1, {"first": 0, "last": 3}[where]] = value
    return ids


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        (changed(first=32), "names expert 32; a layer has 0 to 31"),
        (changed(first=-2), "names expert -2"),
        (changed(first=7, last=7), "names an expert twice in one row .*token 10, layer 1"),
        (changed(first=ABSENT), "fewer experts than others .*token 10, layer 1"),
        (np.full((0, 6, 4), 0), "has no tokens"),
    ],
)
def test_bad_ids_are_refused_in_one_sentence(tmp_path, ids, says):
    np.savez(tmp_path / "a.npz", routed_experts=ids)
    with pytest.raises(SpecfitError, match=says) as refused:
        read_trace(tmp_path / "a.npz", experts=32)
    assert "\n" not in str(refused.value)


def test_a_missing_layer_is_named(tmp_path):
    ids = drawn(20, 3, 2, 16)
    ids[:, 1] = ABSENT
    route_csv(tmp_path / "t.csv", ids, 5, [1, 1, 1], 16)
    with pytest.raises(SpecfitError, match="holds no routes of layer 1 of 3"):
        read_trace(tmp_path / "t.csv")
    ids = drawn(20, 3, 2, 16)
    ids[7, 1] = ABSENT
    route_csv(tmp_path / "t.csv", ids, 5, [1, 1, 1], 16)
    with pytest.raises(SpecfitError, match=r"lacks a layer .*token 7, layer 1"):
        read_trace(tmp_path / "t.csv")


@pytest.mark.parametrize("kind", ["constant", "uniform"])
def test_a_layer_that_was_captured_wrongly_is_named(tmp_path, kind):
    with np.load(SHIPPED / "qwen3-30b-a3b.npz") as stored:
        ids = stored["routed_experts"][0].copy()
    rng = np.random.default_rng(3)
    if kind == "constant":
        ids[:, 17] = ids[0, 17]
    else:
        ids[:, 17] = np.argsort(rng.random((len(ids), 128)), axis=1)[:, :8]
    np.savez(tmp_path / "a.npz", routed_experts=ids)
    with pytest.raises(SpecfitError, match=r"layer 17 .*captured wrongly"):
        read_trace(tmp_path / "a.npz", experts=128)


def test_a_trace_that_does_not_say_its_experts_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", routed_experts=drawn(20, 3, 2, 16))
    with pytest.raises(SpecfitError, match=r"set record.experts"):
        read_trace(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("token,layer\n0,0\n", "has no column expert"),
        ("token,layer,expert\n", "has no rows"),
        ("token,layer,expert\n0,0,x\n", "column expert must hold whole numbers"),
    ],
)
def test_lines_that_are_no_trace(tmp_path, text, says):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(SpecfitError, match=says):
        read_trace(tmp_path / "t.csv", experts=8)


def test_shipped_traces_are_what_their_readme_says():
    shapes = {
        "qwen3-30b-a3b.npz": (48, 8, 4096),
        "qwen.route.csv.xz": (48, 6, 156),
        "gemma.route.csv.xz": (30, 6, 157),
        "gptoss.route.csv.xz": (36, 2, 149),
    }
    for name, shape in shapes.items():
        trace = read_trace(SHIPPED / name)
        assert (trace.layers, trace.top_k, trace.tokens) == shape
        assert trace.experts == 128
    growth = layer_growth(read_trace(SHIPPED / "qwen3-30b-a3b.npz"))
    assert 27 < growth.mean() < 27.5  # published: 27.2 of 8 consecutive tokens
