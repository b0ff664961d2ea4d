"""Recordings of training and development text, with the head's features of every parent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from routing.answers import greedy_answers

from specfit.base.config import from_hydra
from specfit.decoding.resolve import resolve
from specfit.decoding.spec import answerable
from specfit.models.drafter.checkpoint import load_head
from specfit.storage import identity
from specfit.storage.recording.files import Recording, read_recording
from specfit.workflows.hydra_cli import as_text, compose
from specfit.workflows.progress import say
from specfit.workflows.recording.recorder import make_recording, recording_identity

GSM8K_NEW_TOKENS = 160  # longest answer to a real question that is walked


def recorded(dataset: str, split: str, requests: int, results: Path) -> Recording:
    """The first `requests` of a split of an embedded workload; made when missing."""
    return _made([f"dataset={dataset}", f"limit={requests}", f"record.split={split}"], results)


def recorded_gsm8k(train: Path, requests: int, results: Path) -> Recording:
    """The first rows of the real GSM8K train file, which the target was trained on."""
    said = ["dataset=gsm8k", as_text("dataset.path", train), "dataset.rows=[]", f"limit={requests}"]
    return _made([*said, f"max_new_tokens={GSM8K_NEW_TOKENS}"], results)


def _made(said: list[str], results: Path) -> Recording:
    config = from_hydra(compose([*said, "record.features=true", as_text("results_dir", results)]))
    spec = resolve(config, config.record.split)
    who = recording_identity(spec)
    folder = results / "recordings" / identity.digest(who)
    if not folder.is_dir():
        answers = greedy_answers(spec.checkpoint.folder, answerable(spec.workload))
        tally = make_recording(spec, folder, who, say, answers)
        say(f"{tally.token_mismatches} of {tally.tokens} tokens differ from a pass of one text")
    return read_recording(folder)


@dataclass(frozen=True, eq=False)
class Pair:
    """Whose routes are learned, and the head's token embeddings [V, H]."""

    digests: dict[str, str]
    embeddings: torch.Tensor


def pair_of(results: Path) -> Pair:
    from transformers import AutoConfig

    spec = resolve(from_hydra(compose([as_text("results_dir", results)])))
    shape = spec.geometry.vocabulary, spec.geometry.hidden
    head = load_head(
        spec.drafter_folder,
        AutoConfig.from_pretrained(spec.checkpoint.folder),
        lambda name: spec.checkpoint.tensor(name, shape),
    )
    digests = {"target": spec.target_digest, "drafter": spec.drafter_digest}
    return Pair(digests, head.embed_tokens.weight.float())
