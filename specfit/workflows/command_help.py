"""`--help` of each command: what it is for, examples, and the values that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass
from typing import Any

from specfit.base.config import declared
from specfit.workflows.completion import groups


@dataclass(frozen=True)
class About:
    """One command. `hides` are sections and keys that it never reads or decides by itself."""

    purpose: str
    examples: tuple[tuple[str, str], ...]  # arguments, what for
    hides: tuple[str, ...] = ()


ABOUT: dict[str, About] = {
    "run": About(
        "Decodes a workload with one system, beside AR, AR + cache and EAGLE-3 + cache.",
        (
            ("selector=specfit cache_slots=12", "any value of conf/, replaced"),
            ("-m selector=eagle3_cache,specfit cache_slots=0,12,24,48", "a sweep: one table"),
            ("dataset=prompts dataset.path=my.jsonl show=2", "prompts of your own"),
            ("gpu=local", "this machine's own clock: measured times"),
            ("--cfg job", "the config, nothing is run"),
        ),
        ("record",),
    ),
    "record": About(
        "Records draft pools and routes at every position of a workload once, to replay at will.",
        (
            ("limit=5", "five requests"),
            ("record.shard=0/4", "a fourth of them; record.merge joins the parts"),
            ("recording=<id> routes=learned", "adds a predictor's routes to a recording"),
        ),
        ("selector", "calibration.at", "trace", "compare", "show", "objective", "cost"),
    ),
    "replay": About(
        "Runs any selector, slots, policy and profile over a recording: no model, no torch.",
        (
            ("recording=<id> selector=specfit cache_slots=12", "the rows of the live run"),
            ("recording=<id> gpu=rtx4090 -m cache_slots=12,24,48", "another card"),
        ),
        ("model", "dataset", "record", "compare", "show", "logger", "device", "trace"),
    ),
    "calibrate": About(
        "Fits b_k and beta, which SpecFit prices a selection with, or finds the fit.",
        (("", "of the default setting"), ("calibration.slots=24", "at 24 slots")),
        ("record", "compare", "show", "logger", "trace", "limit", "max_new_tokens", "recording"),
    ),
    "probe": About(
        "Measures this machine's link and forwards and writes them as a profile for gpu=local.",
        (("limit=2", "and holds the modelled clock against measured runs of two requests"),),
        ("record", "compare", "show", "trace", "recording", "routes"),
    ),
    "doctor": About(
        "Says what a run needs and what is missing, before anything is fetched.",
        (
            ("model=qwen3-30b-a3b drafter=redhat-eagle3 dataset=gsm8k", "on this machine"),
            ("gpu=rtx4090 gpu.host_memory_gb=64 model=qwen3-30b-a3b", "on a card one plans with"),
        ),
        ("record", "compare", "show", "trace", "recording", "routes", "logger"),
    ),
    "advise": About(
        "Tries every setting on a short recording and says which is fastest and whether "
        "speculation pays.",
        (
            ("dataset=embedded_news", "reports, not word problems"),
            ("gpu=rtx4090 gpu.link_gbps=25", "at the slots that fit that card"),
        ),
        (
            *("record", "compare", "show", "trace", "selector", "objective", "cost", "policy"),
            *("prefetch", "prefetch_blocks", "bypass", "miss", "recording", "routes"),
        ),
    ),
}


def help_template(command: str) -> str:
    """Hydra's `help.template` for one command."""
    about = ABOUT.get(command, About("", ()))
    typed = f"python -m specfit.{command}"
    width = max((len(words) for words, _ in about.examples), default=0)
    examples = [f"  {typed} {words:{width}}  # {what}" for words, what in about.examples]
    return "\n".join(
        (
            f"{typed} group=choice key=value ..",
            *("", about.purpose, "", *examples),
            *("", "Groups and their choices:", "", *_choices(about)),
            *("", "Values, with their defaults (null: none; ...: from its group's file):", ""),
            *_values(about),
            *("", "--cfg job prints the config that the arguments give."),
        )
    )


def _choices(about: About) -> Iterator[str]:
    for name, choices in groups().items():
        if name not in about.hides:
            yield f"  {name}={', '.join(choices)}"


def _values(about: About) -> Iterator[str]:
    for name, item in declared():
        hidden = any(name == one or name.startswith(f"{one}.") for one in about.hides)
        if hidden or not item.metadata:
            continue
        said = [item.metadata["about"], ", ".join(item.metadata["one_of"])]
        told = "; ".join(part for part in said if part)
        start = f"  {name}={_default(item)}"
        yield f"{start:42}{told}".rstrip()


def _default(item: Field[Any]) -> str:
    if item.default is not MISSING:
        value = item.default
    elif item.default_factory is not MISSING and item.default_factory in (list, dict):
        value = item.default_factory()
    else:
        return "..."
    return {None: "null", True: "true", False: "false", "": "''"}.get(
        value if isinstance(value, bool | str | None) else "-", str(value)
    )
