"""The safetensors reader: the same bytes as the library's, and a sentence for damaged files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

from specfit.base.types import SpecfitError  # noqa: E402
from specfit.models.target.shards import Shard  # noqa: E402


@pytest.fixture
def file(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    path = tmp_path / "model.safetensors"
    tensors = {
        "b.weight": torch.randn(3, 5),
        "a.weight": torch.randn(7, 2, dtype=torch.bfloat16),
        "ids": torch.arange(4, dtype=torch.int64),
        "mask": torch.tensor([True, False]),
        "empty": torch.zeros(0, 4),
        "one": torch.tensor(2.5, dtype=torch.float16),
    }
    safetensors.save_file(tensors, path, metadata={"format": "pt"})
    return path


def test_reads_what_the_library_reads(file: Path) -> None:
    shard, expected = Shard(file), safetensors.load_file(file)
    assert shard.entries.keys() == expected.keys()
    for name, tensor in expected.items():
        read = shard.read(shard.entries[name])
        assert read.dtype == tensor.dtype and torch.equal(read, tensor), name


def test_reads_into_a_part_of_a_block(file: Path) -> None:
    shard = Shard(file)
    block = torch.zeros(30)
    shard.read_into(shard.entries["b.weight"], block[10:25].view(3, 5))
    assert torch.equal(block[10:25].view(3, 5), safetensors.load_file(file)["b.weight"])
    assert not block[:10].any() and not block[25:].any()


def test_a_place_of_another_size_is_refused(file: Path) -> None:
    shard = Shard(file)
    with pytest.raises(AssertionError, match="size"):
        shard.read_into(shard.entries["b.weight"], torch.zeros(14))


def test_cut_short_by_an_interrupted_fetch(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(SpecfitError, match=r"damaged \(it has \d+ bytes, its header says \d+\)"):
        Shard(file)


def test_cut_short_while_open(file: Path) -> None:
    shard = Shard(file)
    file.write_bytes(file.read_bytes()[: shard.entries["b.weight"].offset + 3])
    with pytest.raises(SpecfitError, match=r"b\.weight ends early"):
        shard.read(shard.entries["b.weight"])


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"\xff" * 100, b"\x04" + b"\x00" * 11])
def test_no_header(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(SpecfitError, match="is damaged"):
        Shard(file)


def test_a_shape_that_contradicts_its_bytes(file: Path) -> None:
    header = json.dumps({"x": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}).encode()
    file.write_bytes(len(header).to_bytes(8, "little") + header + b"\x00" * 8)
    with pytest.raises(SpecfitError, match="header is not readable"):
        Shard(file)


def test_pages_that_were_read_leave_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every large tensor's bytes are given back once, right after they were read."""
    path, tensor = tmp_path / "model.safetensors", torch.randn(300_000)
    safetensors.save_file({"large": tensor, "small": torch.ones(4)}, path)
    given_back: list[tuple[int, int]] = []
    monkeypatch.setattr(
        os, "posix_fadvise", lambda file, start, size, advice: given_back.append((start, size))
    )
    shard = Shard(path)
    for name in ("large", "small"):
        shard.read(shard.entries[name])
    large = shard.entries["large"]
    assert given_back == [(large.offset, large.size)]
