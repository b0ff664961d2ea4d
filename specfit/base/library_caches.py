"""Folders that libraries write their caches to: asked for before any of them is imported.

In a usual container HOME and the code are read-only. numba then ends with a traceback, and the
scorers' library after the first request; both do their work with another folder.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def homes(environment: Mapping[str, str] = os.environ) -> dict[str, tuple[Path, ...]]:
    """Variable -> the folders that its library would write to, each tried in turn by the library.

    A model is only read from the hub's cache, which may be shared and read-only: HF_HUB_CACHE is
    left as it is.
    """
    home = Path(environment.get("HOME") or os.path.expanduser("~"))
    caches = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    data = home / ".local" / "share"
    hub = Path(environment.get("HF_HOME") or caches / "huggingface")
    return {
        "NUMBA_CACHE_DIR": (PACKAGE / "selection" / "__pycache__", caches / "numba"),
        "HF_MODULES_CACHE": (hub / "modules",),
        "HF_EVALUATE_CACHE": (hub / "evaluate",),
        "HF_METRICS_CACHE": (hub / "metrics",),
        "HF_DATASETS_CACHE": (hub / "datasets",),
        "TRITON_CACHE_DIR": (home / ".triton" / "cache",),
        "MPLCONFIGDIR": (config / "matplotlib",),
        "WANDB_CACHE_DIR": (caches / "wandb",),
        "WANDB_CONFIG_DIR": (config / "wandb",),
        "WANDB_DATA_DIR": (data / "wandb",),
    }


@cache
def ensure() -> None:
    """Variables of libraries whose folder cannot be written name one below the temporary folder,
    here and in every process that this one starts; one sentence on stderr says so."""
    moved = unusable(os.environ)
    if not moved:
        return
    folder = _own_folder()
    for name in moved:
        os.environ[name] = str(folder / name.lower())
        Path(os.environ[name]).mkdir(exist_ok=True)
    print(
        f"specfit: libraries cannot write their caches ({', '.join(moved)}); they go to {folder}; "
        "set HOME, or these, to a folder that can be written",
        file=sys.stderr,
    )


def _own_folder() -> Path:
    """The same one every time, unless that is another user's: numba would run what lies there."""
    folder = Path(tempfile.gettempdir()) / f"specfit-caches-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    state = folder.lstat()
    is_ours = stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid()
    if is_ours and not state.st_mode & 0o022:
        return folder
    return Path(tempfile.mkdtemp(prefix="specfit-caches-"))


def unusable(environment: Mapping[str, str]) -> list[str]:
    """The variables for which the named folder, or else every default one, cannot be written."""
    return [
        name
        for name, defaults in homes(environment).items()
        if not any(
            is_writable(folder)
            for folder in ((Path(environment[name]),) if environment.get(name) else defaults)
        )
    ]


@cache
def is_writable(folder: Path) -> bool:
    """Whether files can be made in it, or in the folder that it would be made in."""
    there = next((one for one in (folder, *folder.parents) if one.exists()), Path("/"))
    try:
        with tempfile.TemporaryFile(dir=there):
            return True
    except OSError:
        return False
