"""Recordings on disk: what was written is read, and anything else is refused by one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from specfit.base.types import DraftTree, Request, Routes, SpecfitError
from specfit.storage import identity
from specfit.storage.recording.files import (
    Recording,
    Shape,
    bytes_per_1000_tokens,
    file_digest,
    find_longer,
    find_recording,
    merged,
    plain_bytes_per_1000_tokens,
    read_once,
    read_recording,
    write_recording,
)
from specfit.storage.recording.requests import Pools, RecordedRequest, pools_of
from specfit.storage.recording.tables import FILES
from tests.selection.pools import random_tree

LAYERS, EXPERTS, TOP_K = 3, 32, 4
SHAPE = Shape(LAYERS, EXPERTS, TOP_K, 8, 8, 99, 512, 768)
FLAT = ("starts", "tokens", "parents", "path_probs", "accepted", "routes")


def request(row: int, tokens: int, features: bool = False) -> RecordedRequest:
    """Pools of uneven sizes; the drafted tokens now and then are the right ones."""
    rng = np.random.default_rng(row)
    output = rng.integers(3, 6, tokens)
    trees = [random_tree(rng, [2, int(rng.integers(1, 5)), 2]) for _ in range(tokens - 1)]
    trees = [
        DraftTree(3 + t.tokens % 3, t.parents, t.depths, t.path_probs) if i % 2 else t
        for i, t in enumerate(trees)
    ]
    ids = [rng.integers(0, EXPERTS, (1 + len(t), LAYERS, TOP_K)) for t in trees]
    wide = [rng.random((len(np.unique(t.parents)), 5)) for t in trees] if features else None
    pools = pools_of(trees, [Routes(i[0], i[1:]) for i in ids], output.tolist(), wide)
    prompt = rng.integers(3, 99, 7)
    asked = Request(f"r{row}", prompt, 64, frozenset(), None, cut_tokens=row)
    routes = rng.integers(0, EXPERTS, (7, LAYERS, TOP_K)).astype(np.uint8)
    return RecordedRequest(
        row, f"r{row}", f"d{row}", "ok", asked, output, "length", "text", 0.5, routes, pools
    )


def recording(*rows: int, features: bool = False) -> Recording:
    requests = [request(row, 5 + row, features) for row in rows]
    failed = RecordedRequest(9, "r9", "d9", "prompt too long")
    who = {"target": "t", "rows": [f"d{row}" for row in rows]}
    return Recording(
        identity.digest(who), who, {"threads": 1}, SHAPE, (2, 0), "a desk", [*requests, failed],
        [request(20, 4), request(21, 6)],
    )  # fmt: skip


def same_pools(a: Pools, b: Pools) -> None:
    for name in FLAT:
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    assert (a.features is None) == (b.features is None)
    if a.features is not None:
        assert np.array_equal(a.features, b.features)


def same_requests(a: RecordedRequest, b: RecordedRequest) -> None:
    names = ("row", "request_id", "example_digest", "status", "stop_reason", "output_text", "score")
    assert [getattr(a, name) for name in names] == [getattr(b, name) for name in names]
    if a.request is None or b.request is None:
        assert a.request is b.request
        return
    assert np.array_equal(a.request.prompt_ids, b.request.prompt_ids)
    assert (a.request.max_new_tokens, a.request.cut_tokens) == (
        b.request.max_new_tokens,
        b.request.cut_tokens,
    )
    assert np.array_equal(np.asarray(a.output_ids), np.asarray(b.output_ids))
    assert np.array_equal(np.asarray(a.prompt_routes), np.asarray(b.prompt_routes))
    if a.pools is not None and b.pools is not None:
        same_pools(a.pools, b.pools)


@pytest.mark.parametrize("features", [False, True])
def test_what_was_written_is_read(tmp_path: Path, features: bool) -> None:
    wrote = recording(0, 3, features=features)
    write_recording(tmp_path / "x", wrote)
    read = read_recording(tmp_path / "x")
    assert (read.recording_id, read.identity, read.config) == (
        wrote.recording_id,
        wrote.identity,
        wrote.config,
    )
    assert (read.shape, read.stop_ids, read.device) == (SHAPE, (2, 0), "a desk")
    for a, b in zip(wrote.requests, read.requests, strict=True):
        same_requests(a, b)
    for a, b in zip(wrote.calibration, read.calibration, strict=True):
        same_requests(a, b)
    marks = read.requests[1].pools
    assert marks is not None and marks.accepted.any() and not marks.accepted.all()


def test_the_same_recording_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_recording(tmp_path / name, recording(0, 1))
    for name in (*FILES, "manifest.json"):
        assert file_digest(tmp_path / "a" / name) == file_digest(tmp_path / "b" / name)


def test_every_column_is_described() -> None:
    for layout in FILES.values():
        assert all(layout.dictionary().values())


# -- refused ---------------------------------------------------------------------------------------


def edit_manifest(folder: Path, **changes: object) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def edit_table(folder: Path, name: str, change: Callable) -> None:  # type: ignore[type-arg]
    """A well-formed file, with the digest that goes with it."""
    path = folder / name
    pq.write_table(change(pq.read_table(path)), path)
    digests = json.loads((folder / "manifest.json").read_text())["digests"]
    edit_manifest(folder, digests=digests | {name: file_digest(path)})


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGE = {
    "manifest.json cannot be read": lambda f: (f / "manifest.json").write_text("{"),
    "something else than a recording": lambda f: edit_manifest(f, kind="run"),
    "is a recording of version 99": lambda f: edit_manifest(f, version=99),
    "has no digests": lambda f: edit_manifest(f, digests=None),
    "pools.parquet is missing": lambda f: (f / "pools.parquet").unlink(),
    "pools.parquet is not the file": lambda f: flip(f / "pools.parquet"),
    "calibration.parquet is not the file": lambda f: flip(f / "calibration.parquet"),
    "lacks the column routes": lambda f: edit_table(
        f, "pools.parquet", lambda t: t.drop_columns(["routes"])
    ),
    "another type in the column position": lambda f: edit_table(
        f, "pools.parquet",
        lambda t: t.set_column(1, "position", t.column("position").cast("int64")),
    ),
    "a position is missing": lambda f: edit_table(f, "pools.parquet", lambda t: t.slice(1)),
    "pools of a request that has no prompt": lambda f: edit_table(
        f, "prompts.parquet", lambda t: t.slice(1)
    ),
    "routes of another shape": lambda f: edit_manifest(
        f, shape=json.loads((f / "manifest.json").read_text())["shape"] | {"layers": 4}
    ),
    "an expert that does not exist": lambda f: edit_manifest(
        f, shape=json.loads((f / "manifest.json").read_text())["shape"] | {"experts": 20}
    ),
}  # fmt: skip


@pytest.mark.parametrize("sentence", DAMAGE)
def test_damage_is_one_sentence(tmp_path: Path, sentence: str) -> None:
    write_recording(tmp_path / "x", recording(0, 3))
    DAMAGE[sentence](tmp_path / "x")
    with pytest.raises(SpecfitError, match=sentence) as raised:
        read_recording(tmp_path / "x")
    assert "\n" not in str(raised.value)


def test_no_recording_there(tmp_path: Path) -> None:
    with pytest.raises(SpecfitError, match=r"make one with `python -m specfit.record`"):
        read_recording(tmp_path)
    with pytest.raises(SpecfitError, match="neither a recording's folder nor an id"):
        find_recording("abc", tmp_path)


def test_more_experts_than_a_byte_names_are_refused() -> None:
    with pytest.raises(SpecfitError, match="up to 256 experts a layer, and this target has 257"):
        replace(SHAPE, experts=257)


def test_found_by_id_or_folder(tmp_path: Path) -> None:
    folder = tmp_path / "recordings" / "abc"
    write_recording(folder, recording(0))
    assert find_recording("abc", tmp_path) == find_recording(str(folder), tmp_path) == folder


# -- merge -----------------------------------------------------------------------------------------


def test_shards_merge_to_the_whole(tmp_path: Path) -> None:
    def of(*rows: int) -> Recording:
        whole = recording(*rows)
        return replace(whole, requests=whole.requests[:-1])

    whole, joined = of(0, 1, 2, 3), merged([of(1, 3), of(0, 2)], identity.digest)
    assert joined.recording_id == whole.recording_id
    for a, b in zip(whole.requests, joined.requests, strict=True):
        same_requests(a, b)
    for name, one in {"whole": whole, "joined": joined}.items():
        write_recording(tmp_path / name, one)
    for name in FILES:
        assert file_digest(tmp_path / "whole" / name) == file_digest(tmp_path / "joined" / name)


def test_only_one_workload_merges_and_only_once() -> None:
    other = recording(1)
    other = replace(other, identity={**other.identity, "target": "another"})
    with pytest.raises(SpecfitError, match="differ in target"):
        merged([recording(0), other], identity.digest)
    with pytest.raises(SpecfitError, match="share a request"):
        merged([recording(0), recording(0)], identity.digest)


# -- size ------------------------------------------------------------------------------------------


def test_size_of_a_thousand_tokens(tmp_path: Path) -> None:
    write_recording(tmp_path / "x", recording(0, 3))
    files = ("pools.parquet", "prompts.parquet")
    size = sum((tmp_path / "x" / name).stat().st_size for name in files)
    assert bytes_per_1000_tokens(tmp_path / "x") == 1000 * size / (4 + 7)
    assert plain_bytes_per_1000_tokens(48, 8, 18) == 1000 * (19 * 48 * 8 + 180)


# -- read once -------------------------------------------------------------------------------------


def test_one_process_reads_a_recording_once_and_again_when_it_is_replaced(tmp_path: Path) -> None:
    write_recording(tmp_path / "x", recording(0, 3))
    first = read_once(tmp_path / "x")
    assert read_once(tmp_path / "x") is first
    write_recording(tmp_path / "x", recording(0, 2))
    assert [one.row for one in read_once(tmp_path / "x").requests] == [0, 2, 9]
    with pytest.raises(SpecfitError, match="holds no recording"):
        read_once(tmp_path / "nowhere")


def test_what_the_target_says_after_each_node() -> None:
    """Row by row as one position at a time gives it; nothing after a rejected node or the end."""
    for row in range(6):
        one = request(row, 7)
        pools, output = one.pools, one.output_ids
        assert pools is not None and output is not None
        for position in range(len(pools)):
            tree, told = pools.tree(position), one.next_tokens[pools.rows(position)].tolist()
            assert len(told) == 1 + len(tree) and told[0] == output[position + 1]
            marks = pools.accepted[pools.nodes(position)]
            for node, marked in enumerate(marks.tolist()):
                after = position + 1 + int(tree.depths[node])
                said = int(output[after]) if marked and after < len(output) else -1
                assert told[1 + node] == said


def test_a_pool_grows_level_by_level() -> None:
    """Pools of uneven depth beside each other."""
    rng = np.random.default_rng(5)
    trees = [random_tree(rng, sizes) for sizes in ([2], [1, 3, 2], [2, 2], [3, 1, 1, 4])]
    routes = [Routes(np.zeros((1, 1), int), np.zeros((len(t), 1, 1), int)) for t in trees]
    pools = pools_of(trees, routes, [0] * 5)
    for position, tree in enumerate(trees):
        grown = pools.grown(position)
        assert [part.levels for part in grown] == list(range(1, tree.levels + 1))
        for part in grown:
            whole = tree.upto(part.levels)
            for name in ("tokens", "parents", "depths", "path_probs"):
                assert np.array_equal(getattr(part, name), getattr(whole, name))


def test_a_recording_that_begins_with_the_requests_serves(tmp_path: Path) -> None:
    long = replace(recording(0, 1, 2), recording_id="long")
    write_recording(tmp_path / "recordings" / "long", long)
    for rows, is_found in (
        ((0, 1), True),
        ((0, 1, 2), True),
        ((1, 2), False),
        ((0, 1, 2, 3), False),
    ):
        found = find_longer(tmp_path, long.identity | {"rows": [f"d{row}" for row in rows]})
        assert (found is not None) == is_found, rows
    assert find_longer(tmp_path, long.identity | {"target": "another"}) is None
    assert find_longer(tmp_path / "nowhere", long.identity) is None
