"""Train routes=learned and count routes=token_table for the embedded pair.

    python scripts/train/route_predictor.py --gsm8k-train path/to/gsm8k/train.jsonl

Text: the pair's own greedy answers to training prompts of both embedded workloads and to the first
questions of the real GSM8K train file, all of which the target was trained on, recorded with the
head's features (made when missing). What is watched, and decides which moment of training is kept,
is development text, whose templates are disjoint from the training and the evaluation ones. No
evaluation or calibration row is read.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "scripts")]

from specfit.base.entry import needs_extras, script  # noqa: E402

with needs_extras():
    import torch
    from routing import export, fit, recordings, samples

    from specfit.models.routes.predictor import PredictorShape
    from specfit.models.routes.token_table import count_table
    from specfit.storage.recording.files import Recording
    from specfit.workflows.progress import say

WORKLOADS = ("embedded_gsm8k", "embedded_news")


@dataclass(frozen=True)
class Requests:
    """Prompts of each split, in the order of WORKLOADS, and of the GSM8K file."""

    train: tuple[int, int] = (300, 300)
    development: tuple[int, int] = (40, 40)
    gsm8k: int = 40  # of 7,473; the last 300 are in nothing that trains


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gsm8k-train", type=Path, help="real questions; left out without it")
    parser.add_argument("--gsm8k", type=int, default=Requests.gsm8k)
    parser.add_argument("--results", type=Path, default=Path("results"), help="for recordings")
    default = REPOSITORY / "specfit/weights/embedded/routes"
    parser.add_argument("--out", type=Path, default=default)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--train", type=int, nargs=2, default=Requests.train)
    parser.add_argument("--development", type=int, nargs=2, default=Requests.development)
    for name, value in asdict(fit.Plan()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    return parser.parse_args()


def recorded(split: str, counts: list[int], results: Path) -> list[Recording]:
    pairs = zip(WORKLOADS, counts, strict=True)
    return [recordings.recorded(dataset, split, count, results) for dataset, count in pairs]


def main() -> None:
    options = parse()
    torch.set_num_threads(1)
    plan = fit.Plan(**{name: getattr(options, name) for name in asdict(fit.Plan())})
    train = recorded("train", options.train, options.results)
    if options.gsm8k_train is not None:
        train.append(recordings.recorded_gsm8k(options.gsm8k_train, options.gsm8k, options.results))
    development = recorded("development", options.development, options.results)
    pair = recordings.pair_of(options.results)
    text, held_out = samples.samples_of(train), samples.samples_of(development)
    say(f"{len(text)} training rows, {len(held_out)} of development text")
    shape = train[0].shape
    table = count_table(text.tokens, text.routes, shape.vocabulary, shape.experts)
    rows = fit.Rows(text, pair.embeddings)
    watched = fit.Rows(held_out, pair.embeddings)
    depths = 1 + int(text.depths.max())
    wanted = PredictorShape(
        shape.hidden, plan.width, depths, shape.layers, shape.experts, shape.top_k
    )
    predictor, looks = fit.train(wanted, rows, watched, plan, options.seed, say)
    fit.fit_given(predictor, watched)
    spec: dict[str, Any] = {
        "seed": options.seed,
        "plan": asdict(plan),
        "train": export.described(train),
        "development": export.described(development),
        "rows": {"train": len(text), "development": len(held_out)},
    }
    export.export(options.out, predictor, table, looks, watched, pair, spec)
    say(f"written: {options.out}")


if __name__ == "__main__":
    sys.exit(script(main))
