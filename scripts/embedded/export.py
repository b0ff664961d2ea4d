"""Copying finished work into the package: weights, tokenizer, curves, statistics, card, provenance."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
import transformers

REPOSITORY = Path(__file__).resolve().parents[2]
CARDS = Path(__file__).resolve().parent / "cards"


def file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def git_commit() -> str | None:
    """The checked-out commit, or None outside a repository or before its first commit."""
    found = subprocess.run(
        ["git", "-C", str(REPOSITORY), "rev-parse", "HEAD"], capture_output=True, text=True
    )
    return found.stdout.strip() if found.returncode == 0 else None


def public_command(arguments: list[str]) -> str:
    """The command line with every path cut to its last part: no machine's folders in the files."""
    cut = [Path(a).name if "/" in a else a for a in arguments]
    return " ".join(["python", "scripts/train_embedded.py", *cut])


def provenance(facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "command": public_command(sys.argv[1:]),
        "commit": git_commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        **facts,
    }


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n")


def export(work: Path, out: Path, part: str, facts: dict[str, Any]) -> None:
    """Replace out/part by work/part plus curve, statistics, card and provenance."""
    folder = out / part
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(work / part, folder)
    for name in (f"{part}_curve.csv", f"{part}_statistics.json"):
        if (work / name).exists():
            shutil.copy(work / name, folder / name.removeprefix(f"{part}_"))
    weights = sorted(folder.glob("*.safetensors"))
    digests = {p.name: file_digest(p) for p in weights}
    write_json(folder / "provenance.json", provenance({**facts, "weights_sha256": digests}))
    shutil.copy(CARDS / f"{part}.md", folder / "README.md")
