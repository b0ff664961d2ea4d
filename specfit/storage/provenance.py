"""Which code, versions and machine made a run. Everything may be null; nothing here may fail."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("specfit", "torch", "transformers", "numba", "numpy", "pyarrow", "hydra-core", "triton")
GIT_SECONDS = 10


@dataclass(frozen=True)
class Provenance:
    commit: str | None  # of the clone that holds the code
    diff_hash: str | None  # of the uncommitted changes to tracked files; null where there are none
    versions: dict[str, str | None]
    argv: list[str]
    platform: str | None
    cpu: str | None
    cpu_count: int | None
    arithmetic: str | None = None  # torch's library and instructions on a CPU: they decide low bits

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def collect(argv: Sequence[str] | None = None) -> Provenance:
    source = Path(__file__).resolve().parents[2]
    return Provenance(
        commit=commit_of(source),
        diff_hash=diff_hash_of(source),
        versions={"python": platform.python_version(), **{p: _version(p) for p in PACKAGES}},
        argv=list(sys.argv if argv is None else argv),
        platform=platform.platform() or None,
        cpu=cpu_name(),
        cpu_count=os.cpu_count(),
        arithmetic=arithmetic(),
    )


def commit_of(folder: Path) -> str | None:
    if not (folder / ".git").exists():  # a wheel inside another project's clone is not that clone
        return None
    out = _git(folder, "rev-parse", "HEAD")
    return out.decode().strip() or None if out is not None else None


def diff_hash_of(folder: Path) -> str | None:
    if commit_of(folder) is None:
        return None
    diff = _git(folder, "diff", "HEAD", "--no-ext-diff", "--no-color")
    return hashlib.sha256(diff).hexdigest()[:12] if diff else None


def cpu_name() -> str | None:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip() or None
    except OSError:
        pass
    return platform.processor() or None


def arithmetic() -> str | None:
    """Of the torch this process has loaded; None where it has none, as in a replay."""
    torch = sys.modules.get("torch")
    try:
        if torch is None:
            return None
        library = "mkl" if torch.backends.mkl.is_available() else "no mkl"
        return f"{library}, {torch.backends.cpu.get_cpu_capability()}"
    except (AttributeError, RuntimeError):
        return None


def _git(folder: Path, *arguments: str) -> bytes | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, timeout=GIT_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
