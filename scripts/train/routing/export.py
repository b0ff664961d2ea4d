"""The trained source into the package: both files, course, statistics, card, provenance."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch
from routing.fit import Look, Rows
from routing.recordings import Pair

from specfit.models.routes.predictor import RoutePredictor, save_predictor
from specfit.models.routes.token_table import Table, save_table
from specfit.storage import provenance
from specfit.storage.recording.files import Recording, file_digest

CARD = Path(__file__).resolve().parent / "card.md"


def described(made_from: Sequence[Recording]) -> list[dict[str, Any]]:
    """Which texts, without any machine's folder."""
    return [
        {
            "dataset": one.config["dataset"]["name"],
            "recording": one.recording_id,
            "requests": len(one.requests),
            "positions": one.positions,
            "rows": [one.requests[0].request_id, one.requests[-1].request_id],
        }
        for one in made_from
    ]


def export(
    out: Path,
    predictor: RoutePredictor,
    table: Table,
    looks: Sequence[Look],
    held_out: Rows,
    pair: Pair,
    spec: Mapping[str, Any],
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    save_predictor(out / "learned.safetensors", predictor, pair.digests)
    save_table(out / "token_table.safetensors", table, {"target": pair.digests["target"]})
    with (out / "curve.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Look)])
        writer.writerows(asdict(look).values() for look in looks)
    statistics = statistics_of(predictor, table, held_out)
    _write(out / "statistics.json", statistics)
    digests = {path.name: file_digest(path) for path in sorted(out.glob("*.safetensors"))}
    made = provenance.collect()
    _write(
        out / "provenance.json",
        {
            "command": _command(sys.argv[1:]),
            "commit": made.commit,
            "versions": made.versions,
            "shape": asdict(predictor.shape),
            "parameters": predictor.shape.parameters,
            **spec,
            "pair": pair.digests,
            "weights_sha256": digests,
        },
    )
    (out / "README.md").write_text(card(predictor, statistics))
    for path in out.iterdir():
        path.chmod(0o644)  # safetensors writes files only their owner can read


@torch.inference_mode()
def statistics_of(predictor: RoutePredictor, table: Table, rows: Rows) -> dict[str, Any]:
    """Share of a row's routed experts among as many named, held-out rows, by layer."""
    shape = predictor.shape
    named, counted = torch.zeros(2, shape.layers), 0
    chance, used = torch.zeros(10), torch.zeros(10)
    for part in torch.arange(len(rows)).split(4096):
        logits, wanted = predictor(*rows.inputs(part)), rows.targets(part, shape.experts)
        top = logits.topk(shape.top_k, dim=-1).indices
        told = torch.from_numpy(table[rows.samples.tokens[part.numpy()]]).long()
        for source, ids in enumerate((top, told)):
            named[source] += wanted.gather(-1, ids).sum((0, 2))
        counted += len(part)
        bins = (logits.sigmoid() * 10).long().clamp(max=9).flatten()
        chance.index_add_(0, bins, logits.sigmoid().flatten())
        used.index_add_(0, bins, wanted.flatten())
    share = named / (counted * shape.top_k)
    return {
        "text": "development",
        "rows": counted,
        "recall_by_layer": {
            "learned": [round(float(v), 4) for v in share[0]],
            "token_table": [round(float(v), 4) for v in share[1]],
        },
        "chances_by_tenth": {
            "predicted": [round(float(v), 1) for v in chance],
            "used": [round(float(v), 1) for v in used],
        },
    }


def card(predictor: RoutePredictor, statistics: Mapping[str, Any]) -> str:
    shape = predictor.shape
    lines = ["| layer | " + " | ".join(str(i) for i in range(shape.layers)) + " | all |"]
    lines.append("|---" * (shape.layers + 2) + "|")
    for name, shares in statistics["recall_by_layer"].items():
        cells = [f"{v:.3f}" for v in (*shares, sum(shares) / len(shares))]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    text = CARD.read_text().replace("{table}", "\n".join(lines))
    return text.replace("{parameters}", f"{shape.parameters:,}").replace(
        "{width}", str(shape.width)
    )


def _command(arguments: list[str]) -> str:
    """Every path cut to its last part: no machine's folders in the files."""
    cut = [Path(word).name if "/" in word else word for word in arguments]
    return " ".join(["python", "scripts/train/route_predictor.py", *cut])


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")
