"""Build the embedded pair from nothing: tokenizer, target, drafter, statistics, export.

    python scripts/train/embedded_pair.py --gsm8k-train path/to/gsm8k/train.jsonl

Every stage resumes: what is finished in the work folder is not done again, training goes on from
its last checkpoint. Delete the work folder to start anew.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

# Both before torch: 2 MB pages make its large temporaries several times cheaper to touch on CPU.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "scripts")]

from specfit.base.entry import needs_extras, script  # noqa: E402

with needs_extras():
    import torch
    from embedded import continuations, drafter, export, mix, report, stream, target
    from embedded import tokenizer as tok
    from embedded.progress import load_checkpoint

    from specfit.models.drafter.checkpoint import load_head

STAGES = ("tokenizer", "target", "drafter", "statistics", "export")


@dataclass(frozen=True)
class Sizes:
    """How much text each stage reads."""

    tokenizer_documents: int = 4000  # of every source
    train_tokens: int = 28_000_000
    held_out_tokens: int = 60_000  # of every source and split
    generated_documents: int = 1000  # of every source, for the drafter
    statistics_documents: int = 120  # of every source and split
    digest_documents: int = 200


SMOKE_SIZES = Sizes(300, 200_000, 8_000, 4, 4, 20)
PLAN_DRAFTER = drafter.DrafterPlan()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gsm8k-train", type=Path, help="GSM8K train.jsonl; rows but the last 200")
    parser.add_argument("--steps-target", type=int, default=4006, help="of 4,096 tokens")
    parser.add_argument("--steps-drafter", type=int, default=144, help="of 2,048 tokens")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", type=Path, default=REPOSITORY / "build/embedded")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "specfit/weights/embedded")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--smoke", action="store_true", help="a few steps: valid files, no skill")
    return parser.parse_args()


@dataclass(frozen=True)
class Job:
    """What every stage needs."""

    work: Path
    out: Path
    seed: int
    threads: int
    steps_target: int
    steps_drafter: int
    sizes: Sizes
    gsm8k: mix.Gsm8k | None

    @property
    def target_folder(self) -> Path:
        return self.work / "target"

    def stream(self, split: str, source: str | None = None) -> stream.Stream:
        tokens = self.sizes.train_tokens if split == "train" else self.sizes.held_out_tokens
        tokenizer = tok.load(self.target_folder)
        folder = self.work / "corpus"
        return stream.load_or_build(folder, split, tokens, source, self.gsm8k, tokenizer)

    def held_out(self, split: str) -> dict[str, stream.Stream]:
        return {name: self.stream(split, name) for name in mix.sources(self.gsm8k)}


def train_tokenizer(job: Job) -> None:
    if not (job.target_folder / "tokenizer.json").exists():
        job.target_folder.mkdir(parents=True, exist_ok=True)
        tok.train(job.sizes.tokenizer_documents, job.gsm8k, job.target_folder)


def end_ids(job: Job) -> list[int]:
    tokenizer = tok.load(job.target_folder)
    return [tokenizer.token_to_id(tok.TURN_END), tokenizer.token_to_id(tok.END_OF_TEXT)]


def train_target(job: Job) -> None:
    if (job.target_folder / "config.json").exists():
        return
    ids = end_ids(job)
    model = target.new_target(job.seed, ids, pad_id=ids[1])
    development = job.held_out("development")
    text = job.stream("train")
    plan = target.TargetPlan()
    target.train(job.work, model, text, development, plan, job.steps_target, job.threads)
    target.save(model, job.target_folder)


def train_drafter(job: Job) -> None:
    if (job.work / "drafter" / "config.json").exists():
        return
    model = target.load(job.target_folder)
    text = job.stream("train")
    generated = continuations.load_or_generate(
        job.work / "corpus",
        model,
        tok.load(job.target_folder),
        job.gsm8k,
        job.sizes.generated_documents,
        job.threads,
    )
    head = drafter.new_head(model, text, job.seed)
    drafter.train(
        job.work,
        head,
        model,
        [text, generated],
        job.held_out("development"),
        PLAN_DRAFTER,
        job.steps_drafter,
        job.threads,
    )
    drafter.save(head, model, job.work / "drafter")


def write_statistics(job: Job) -> None:
    """Of the stored, rounded weights. Held-out text only."""
    model = target.load(job.target_folder)
    splits = {name: job.held_out(name) for name in ("development", "evaluation")}
    documents = job.sizes.statistics_documents
    statistics = report.target_statistics(model, splits, documents)
    export.write_json(job.work / "target_statistics.json", statistics)
    head = load_head(job.work / "drafter", model.config).float()
    statistics = report.drafter_statistics(head, model, splits, documents, PLAN_DRAFTER.steps_ahead)
    export.write_json(job.work / "drafter_statistics.json", statistics)


def export_pair(job: Job) -> None:
    digest = mix.digest(mix.sample("train", job.sizes.digest_documents, None))
    plans = {"target": asdict(target.TargetPlan()), "drafter": asdict(PLAN_DRAFTER)}
    for part in ("target", "drafter"):
        state = load_checkpoint(job.work / f"{part}.pt")
        assert state is not None, f"no {part} checkpoint in the work folder"
        spec: dict[str, Any] = {
            "seed": job.seed,
            "corpus_sample": f"first {job.sizes.digest_documents} documents of both generators",
            "corpus_sample_sha256": digest,
            "tokenizer_sha256": export.file_digest(job.target_folder / "tokenizer.json"),
            "gsm8k_train_sha256": job.gsm8k.sha256 if job.gsm8k else None,
            "minutes": round(state["elapsed_s"] / 60, 1),
            "steps": state["step"],
            "plan": plans[part],
        }
        export.export(job.work, job.out, part, spec)


def main() -> None:
    options = parse()
    torch.set_num_threads(1)  # processes, not threads: see embedded/workers.py
    gsm8k = mix.Gsm8k.read(options.gsm8k_train) if options.gsm8k_train else None
    if gsm8k is None:
        print("No --gsm8k-train file: training on the two generators only.", flush=True)
    job = Job(
        options.work,
        options.out,
        options.seed,
        options.threads,
        options.steps_target,
        options.steps_drafter,
        Sizes(),
        gsm8k,
    )
    if options.smoke:
        job = replace(job, sizes=SMOKE_SIZES, steps_target=2, steps_drafter=2)
    run = {
        "tokenizer": train_tokenizer,
        "target": train_target,
        "drafter": train_drafter,
        "statistics": write_statistics,
        "export": export_pair,
    }
    for stage in STAGES:
        if stage in options.stages:
            print(f"stage {stage}", flush=True)
            run[stage](job)


if __name__ == "__main__":
    sys.exit(script(main))
