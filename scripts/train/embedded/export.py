"""Finished work into the package: weights, tokenizer, curve, statistics, card, provenance."""

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
from embedded.report import drafter_table, target_table

REPOSITORY = Path(__file__).resolve().parents[3]
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
    return " ".join(["python", "scripts/train/embedded_pair.py", *cut])


def provenance(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "command": public_command(sys.argv[1:]),
        "commit": git_commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        **spec,
    }


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n")


def export(work: Path, out: Path, part: str, spec: dict[str, Any]) -> None:
    """Replace out/part by work/part plus curve, statistics, card and provenance."""
    folder = out / part
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(work / part, folder)
    shutil.copy(work / f"{part}_curve.csv", folder / "curve.csv")
    shutil.copy(work / f"{part}_statistics.json", folder / "statistics.json")
    digests = {p.name: file_digest(p) for p in sorted(folder.glob("*.safetensors"))}
    write_json(folder / "provenance.json", provenance({**spec, "weights_sha256": digests}))
    (folder / "README.md").write_text(card(folder, part))
    for path in folder.iterdir():
        path.chmod(0o644)  # safetensors writes files only their owner can read


def card(folder: Path, part: str) -> str:
    """The model card: fixed text around the table of this build's statistics."""
    statistics = json.loads((folder / "statistics.json").read_text())
    tables = {"target": target_table, "drafter": drafter_table}
    text = (CARDS / f"{part}.md").read_text()
    return text.replace("{table}", tables[part](statistics))
