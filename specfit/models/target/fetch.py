"""A checkpoint folder from the hub: one pinned revision, data files only, whole or not at all.

Nothing that could run is fetched: no pickles, no code. What is in the hub's cache is used without a
network; what is not is fetched after the disk was asked, and an interrupted fetch goes on.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from specfit.base.library_caches import is_writable
from specfit.base.types import SpecfitError
from specfit.models.target.checkpoint import INDEX, SINGLE, shards_of

WANTED = ("*.safetensors", "*.json", "*.jinja", "merges.txt", "vocab.txt", "tokenizer.model")
UNWANTED = ("consolidated*", "original/*", "*/*")
DISK_RESERVE = 1_000_000_000
GB = 1e9
SECONDS = 10.0  # that the hub has to answer at all


@dataclass(frozen=True)
class Repository:
    """`key` is the config group that names it (model, drafter): sentences say what to set."""

    key: str
    name: str  # owner/name
    revision: str | None

    @property
    def command(self) -> str:
        """Fetches what is missing, and goes on where an earlier fetch stopped."""
        at = f" --revision {self.revision}" if self.revision else ""
        kinds = " ".join(f"'{pattern}'" for pattern in WANTED[:3])
        return f"run `hf download {self.name}{at} --include {kinds}`, which resumes"


def to_fetch(repository: Repository) -> int:
    """Bytes that a fetch would bring. Raises SpecfitError where `snapshot` would before it fetched:
    no network, no such repository, too small a disk."""
    needed = sum(_listed(repository, in_cache(repository)).values())
    folder, free = hub_disk()
    if needed + DISK_RESERVE > free:
        raise SpecfitError(
            f"{repository.name} needs {needed / GB:.1f} GB of disk at {folder}, {free / GB:.1f} "
            f"are free; set HF_HOME to another disk, or {repository.key}.path to a folder"
        )
    if not is_writable(folder):
        raise SpecfitError(
            f"{repository.name} is to be fetched to {folder}, which cannot be written; set HF_HOME "
            f"to another folder, or {repository.key}.path to the files"
        )
    return needed


@contextmanager
def quiet_hub() -> Iterator[None]:
    """The hub's client tells every retry on stderr; what came of them is said in one sentence."""
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def snapshot(repository: Repository, say: Callable[[str], None] = print) -> Path:
    """The folder of a complete snapshot, fetched where it is not in the hub's cache.

    Raises SpecfitError: no network, too small a disk, an incomplete folder.
    """
    cached = in_cache(repository)
    if cached is not None and not absent_files(cached):
        return cached
    from huggingface_hub import snapshot_download

    needed = to_fetch(repository)
    say(f"fetching {needed / GB:.1f} GB of {repository.name} to {hub_disk()[0]}")
    try:
        with quiet_hub():
            folder = snapshot_download(
                repository.name,
                revision=repository.revision,
                allow_patterns=list(WANTED),
                ignore_patterns=list(UNWANTED),
            )
    except Exception as error:
        raise _unreached(repository, cached, error) from None
    absent = absent_files(Path(folder))
    if absent:
        raise SpecfitError(f"{folder} lacks {absent[0]} after the fetch; {repository.command}")
    return Path(folder)


def metadata(repository: Repository, names: Sequence[str]) -> dict[str, Any] | None:
    """Small JSON files of the repository, without its weights: None where one cannot be had."""
    from huggingface_hub import hf_hub_download

    found: dict[str, Any] = {}
    for name in names:
        try:
            with quiet_hub():
                path = hf_hub_download(repository.name, name, revision=repository.revision)
            found |= {name: json.loads(Path(path).read_text(encoding="utf-8"))}
        except Exception:
            return None
    return found


def in_cache(repository: Repository) -> Path | None:
    """The snapshot's folder in the hub's cache, which may lack files."""
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(
                repository.name,
                revision=repository.revision,
                allow_patterns=list(WANTED),
                ignore_patterns=list(UNWANTED),
                local_files_only=True,
            )
        )
    except Exception as error:
        # newer clients refuse a half-fetched snapshot and name its folder
        folder = getattr(error, "snapshot_path", None)
        return Path(folder) if folder is not None and Path(folder).is_dir() else None


def is_fetched(repository: Repository) -> bool:
    """Whether every file is in the hub's cache; nothing is asked of the network."""
    cached = in_cache(repository)
    return cached is not None and not absent_files(cached)


def absent_files(folder: Path) -> list[str]:
    """Files a snapshot must have and lacks: its config and every shard that the index names."""
    wanted = ["config.json", *(_shards(folder) or [SINGLE])]
    return [name for name in wanted if not (folder / name).is_file()]


def _shards(folder: Path) -> list[str]:
    """What the index names; nothing where there is no index."""
    if not (folder / INDEX).is_file():
        return []
    return sorted(set(shards_of(folder / INDEX).values()))


def _listed(repository: Repository, cached: Path | None) -> dict[str, int]:
    """Names and bytes of the files to fetch, as the hub says."""
    from huggingface_hub import HfApi

    try:
        with quiet_hub():
            info = HfApi().model_info(
                repository.name, revision=repository.revision, files_metadata=True, timeout=SECONDS
            )
    except Exception as error:
        raise _unreached(repository, cached, error) from None
    files: dict[str, int] = {}
    for file in info.siblings or []:
        name = file.rfilename
        chosen = any(fnmatch(name, pattern) for pattern in WANTED)
        refused = any(fnmatch(name, pattern) for pattern in UNWANTED)
        there = cached is not None and (cached / name).is_file()
        if chosen and not refused and not there:
            files[name] = file.size or 0
    names = [file.rfilename for file in info.siblings or []]
    pickled = next((n for n in names if n.endswith((".bin", ".pt", ".pth", ".ckpt"))), None)
    if pickled is not None and not any(n.endswith(".safetensors") for n in names):
        raise SpecfitError(
            f"{repository.name} stores its weights as a pickle ({pickled}), which could run any "
            f"code when it is read; convert it to {SINGLE} with safetensors, and set "
            f"{repository.key}.path to that folder"
        )
    return files


def hub_disk() -> tuple[Path, int]:
    """The hub's cache folder and the bytes free on its disk."""
    from huggingface_hub.constants import HF_HUB_CACHE

    folder = Path(HF_HUB_CACHE)
    there = next(path for path in (folder, *folder.parents) if path.is_dir())
    return folder, shutil.disk_usage(there).free


def _unreached(repository: Repository, cached: Path | None, error: Exception) -> SpecfitError:
    """One sentence for no network, offline mode, a wrong name, a gated repository."""
    kind = type(error).__name__
    if kind in ("RepositoryNotFoundError", "RevisionNotFoundError", "GatedRepoError"):
        why = {
            "RepositoryNotFoundError": "is not on the hub, or not for this account",
            "RevisionNotFoundError": f"has no revision {repository.revision}",
            "GatedRepoError": "asks for an accepted licence and `hf auth login` first",
        }[kind]
        return SpecfitError(f"{repository.key}.repository={repository.name} {why}")
    shards = _shards(cached) if cached is not None else []
    state = "is not in the hub's cache"
    if cached is not None and shards:
        present = sum((cached / name).is_file() for name in shards)
        state = f"has {present} of {len(shards)} shards in the hub's cache"
    return SpecfitError(
        f"{repository.name} {state} and the hub is not reached ({_reason(error)}); where there is "
        f"a network, {repository.command}, or set {repository.key}.path=<its folder>"
    )


def _reason(error: Exception) -> str:
    if "offline" in type(error).__name__.lower() or "HF_HUB_OFFLINE" in str(error):
        return "HF_HUB_OFFLINE is set"
    return "no network" if "onnect" in str(error) + type(error).__name__ else type(error).__name__
