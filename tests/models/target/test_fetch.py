"""The hub: cached snapshots are used, disks are asked first, and no network is one sentence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

hub = pytest.importorskip("huggingface_hub")
pytest.importorskip("torch")

from specfit.base.types import SpecfitError  # noqa: E402
from specfit.models.target import fetch  # noqa: E402
from specfit.models.target.fetch import Repository, absent_files, snapshot  # noqa: E402

REPOSITORY = Repository("model", "Qwen/Some-30B", "0d7c")
SHARDS = [f"model-{i:05d}-of-00004.safetensors" for i in range(1, 5)]


def files(folder: Path, shards: list[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}")
    weight_map = {f"tensor{i}": name for i, name in enumerate(SHARDS)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    for name in shards:
        (folder / name).write_bytes(b"")
    return folder


class Hub:
    """A hub with one repository; `reached` False fails as a missing network does."""

    def __init__(self, folder: Path, cached: list[str] | None, reached: bool = True) -> None:
        self.folder, self.reached = folder, reached
        self.asked: list[dict[str, Any]] = []
        if cached is not None:
            files(folder, cached)

    def snapshot_download(self, name: str, **options: Any) -> str:
        if options.get("local_files_only"):
            if not self.folder.exists():
                raise hub.errors.LocalEntryNotFoundError("not cached")
            if any(not (self.folder / shard).exists() for shard in SHARDS):
                raise hub.errors.IncompleteSnapshotError("incomplete", str(self.folder))
            return str(self.folder)
        self.asked.append(options)
        if not self.reached:
            raise ConnectionError("Connection refused")
        return str(files(self.folder, SHARDS))

    def model_info(self, name: str, **options: Any) -> Any:
        if not self.reached:
            raise ConnectionError("Connection refused")
        names = ["config.json", "pytorch_model.bin", "run.py", "original/x.safetensors", *SHARDS]
        siblings = [SimpleNamespace(rfilename=n, size=10**9) for n in names]
        return SimpleNamespace(siblings=siblings)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Hub]:
    def make(cached: list[str] | None, reached: bool = True, free: int = 10**12) -> Hub:
        made = Hub(tmp_path / "snapshot", cached, reached)
        monkeypatch.setattr(hub, "snapshot_download", made.snapshot_download)
        monkeypatch.setattr(hub, "HfApi", lambda: made)
        usage = SimpleNamespace(free=free)
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
        return made

    return make


def silent(text: str) -> None:
    pass


def test_a_complete_snapshot_needs_no_hub(given: Callable[..., Hub]) -> None:
    made = given(SHARDS, reached=False)
    assert snapshot(REPOSITORY, silent) == made.folder and not made.asked


def test_data_files_of_the_pinned_revision_are_fetched(given: Callable[..., Hub]) -> None:
    made, said = given(None), []
    assert snapshot(REPOSITORY, said.append) == made.folder
    (options,) = made.asked
    assert options["revision"] == "0d7c"
    assert not any("bin" in pattern or "py" in pattern for pattern in options["allow_patterns"])
    assert said[0].startswith("fetching 5.0 GB of Qwen/Some-30B")  # no pickle, no code, no folder


def test_an_interrupted_fetch_goes_on(given: Callable[..., Hub]) -> None:
    made, said = given(SHARDS[:3]), []
    snapshot(REPOSITORY, said.append)
    assert said[0].startswith("fetching 1.0 GB") and not absent_files(made.folder)


def test_the_disk_is_asked_before_a_byte_moves(given: Callable[..., Hub]) -> None:
    made = given(None, free=5_500_000_000)
    with pytest.raises(
        SpecfitError, match=r"needs 5\.0 GB of disk at .*, 5\.5 are free; set HF_HOME"
    ):
        snapshot(REPOSITORY, silent)
    assert not made.asked


def test_no_network_counts_the_shards_and_gives_the_command(given: Callable[..., Hub]) -> None:
    given(SHARDS[:3], reached=False)
    with pytest.raises(SpecfitError) as raised:
        snapshot(REPOSITORY, silent)
    text = str(raised.value)
    assert "has 3 of 4 shards in the hub's cache and the hub is not reached (no network)" in text
    assert "run `hf download Qwen/Some-30B --revision 0d7c" in text
    assert text.endswith("or set model.path=<its folder>")


def test_nothing_cached_and_no_network(given: Callable[..., Hub]) -> None:
    given(None, reached=False)
    with pytest.raises(SpecfitError, match=r"is not in the hub's cache .*\(no network\)"):
        snapshot(REPOSITORY, silent)


def test_a_wrong_name_is_said_as_such(
    given: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = given(None)

    class RepositoryNotFoundError(Exception):
        pass

    def missing(name: str, **options: Any) -> Any:
        raise RepositoryNotFoundError

    monkeypatch.setattr(made, "model_info", missing)
    with pytest.raises(SpecfitError, match=r"model\.repository=Qwen/Some-30B is not on the hub"):
        snapshot(REPOSITORY, silent)


def test_a_fetch_that_leaves_a_hole_is_seen(
    given: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = given(None)

    def holed(name: str, **options: Any) -> str:
        if options.get("local_files_only"):
            raise hub.errors.LocalEntryNotFoundError("not cached")
        return str(files(made.folder, SHARDS[1:]))

    monkeypatch.setattr(hub, "snapshot_download", holed)
    with pytest.raises(SpecfitError, match=f"lacks {SHARDS[0]} after the fetch; run `hf download"):
        snapshot(REPOSITORY, silent)


def test_offline_mode_is_the_real_clients_word(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The installed client, unmocked: offline, an empty cache."""
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(SpecfitError, match="HF_HUB_OFFLINE is set"):
        snapshot(REPOSITORY, silent)
    assert fetch.metadata(REPOSITORY, ["config.json"]) is None


def test_a_repository_of_pickles_is_named_as_one(
    given: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = given(None)
    siblings = [SimpleNamespace(rfilename=n, size=1) for n in ("config.json", "pytorch_model.bin")]
    monkeypatch.setattr(made, "model_info", lambda *_, **__: SimpleNamespace(siblings=siblings))
    with pytest.raises(SpecfitError, match=r"as a pickle \(pytorch_model.bin\).*drafter.path"):
        snapshot(Repository("drafter", "some/head", "abc"), lambda _: None)
    assert made.asked == [], "nothing was fetched"
