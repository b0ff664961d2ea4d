"""Are the ids of every finished run the target's own? Compares them with plain `generate`.

    python scripts/check/ids.py dataset=embedded_gsm8k

Runs `transformers`' greedy `generate` (fp32, no offload, no specfit code but the prompts) on the
requests of the dataset and compares each finished run's rows with it, one line per run. A mismatch
is named, not excused: the margin between the two best logits at its first token, and the closest
router decision before it (relative gap between the last expert chosen and the first one not). A gap
near 1e-7 is one unit in the last place of fp32: there the same model, run over the same tokens in
forwards of another shape, routes differently by itself, which is checked and printed too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from specfit.base.entry import needs_extras, script

with needs_extras():
    import torch
    from near_ties import closest, plain_model
    from transformers import PreTrainedModel

    from specfit.base.types import Request, RequestError, SpecfitError
    from specfit.decoding.resolve import LiveRunSpec, resolve
    from specfit.storage.find import finished_runs
    from specfit.storage.manifest import RunInfo
    from specfit.storage.rows import load_run
    from specfit.workflows.execute import requests_digest
    from specfit.workflows.hydra_cli import config_of
    from specfit.workflows.studies.stored import stored_run


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, help="default: results_dir, as of a run")
    parser.add_argument("overrides", nargs="*", help="dataset=..., dataset.path=..., limit=...")
    return parser.parse_args()


@torch.inference_mode()
def generate(model: PreTrainedModel, request: Request) -> list[int]:
    prompt = torch.from_numpy(request.prompt_ids)[None]
    output = model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        do_sample=False,
        max_new_tokens=request.max_new_tokens,
        eos_token_id=sorted(request.stop_ids),
    )
    return output[0, prompt.shape[1] :].tolist()


def name_mismatch(
    model: PreTrainedModel, request: Request, ids: list[int], other: list[int]
) -> str:
    """Where two outputs part, and how close the decisions before that were, in one plain pass."""
    at = next((i for i, (a, b) in enumerate(zip(ids, other, strict=False)) if a != b), None)
    if at is None:
        return f"one output is longer: {len(ids)} and {len(other)} tokens"
    prompt = request.prompt_ids.tolist()
    found = closest(model, [*prompt, *ids[:at]])
    agrees = {ids[at]: "generate", other[at]: "the run"}.get(found.token, "neither")
    return (
        f"token {at}; margin of the two best logits {found.margin:.1e}; closest router decision "
        f"before it {found.router_gap:.1e} (layer {found.layer}, token {found.row - len(prompt)}); "
        f"plain transformers in one pass agrees with {agrees}"
    )


@dataclass(frozen=True)
class Checked:
    """A finished run, its requests, or why its ids say nothing."""

    folder: Path
    info: RunInfo
    requests: dict[str, Request]
    skipped: str = ""


def checked_runs(spec: LiveRunSpec, results: Path) -> Iterator[Checked]:
    """Finished runs of the named model and dataset, each with its own requests: its cap is the
    run's, whatever this command's would be. `limit` and the dataset's path are the command's."""
    named = {"dataset": spec.config.dataset.name, "model": spec.config.model.name}
    for folder, manifest in finished_runs(results / "runs", **named):
        info = manifest.info
        if info.target_digest != spec.target_digest:
            yield Checked(folder, info, {}, "its target's files are other ones")
            continue
        if info.dtype != "float32":
            yield Checked(folder, info, {}, f"it ran in {info.dtype}, generate in float32")
            continue
        config = stored_run(folder)
        if config.model.num_layers is not None or config.model.routing != "weights":
            yield Checked(folder, info, {}, "it ran another model: fewer layers, or made-up routes")
            continue
        dataset = replace(config.dataset, path=spec.config.dataset.path)
        own = replace(spec, config=replace(config, dataset=dataset, results_dir=str(results)))
        if requests_digest(own) != info.requests_digest:
            yield Checked(folder, info, {}, "its prompts are not those that this command makes")
            continue
        yield Checked(folder, info, requests_of(own, spec.config.limit))


def requests_of(spec: LiveRunSpec, limit: int | None) -> dict[str, Request]:
    """By id; one that cannot be made failed in the run too."""
    found = {}
    for index, name in enumerate(spec.workload.ids[:limit]):
        with suppress(RequestError):
            found[name] = spec.workload.request(index)
    return found


class Outputs:
    """What `generate` writes, each prompt once: a shorter cap's output is a longer one's start.

    `load` gives the model, which is kept; it is called once there is a prompt.
    """

    def __init__(self, load: Callable[[], PreTrainedModel], requests: Iterable[Request]) -> None:
        self.load = load
        self._caps: dict[bytes, int] = {}
        self._ids: dict[bytes, list[int]] = {}
        for request in requests:
            prompt = request.prompt_ids.tobytes()
            self._caps[prompt] = max(self._caps.get(prompt, 0), request.max_new_tokens)

    def of(self, request: Request) -> list[int]:
        prompt = request.prompt_ids.tobytes()
        if prompt not in self._ids:
            longest = replace(request, max_new_tokens=self._caps[prompt])
            self._ids[prompt] = generate(self.load(), longest)
        return self._ids[prompt][: request.max_new_tokens]


def compare(one: Checked, outputs: Outputs) -> tuple[int, int]:
    """(requests compared, requests that differ), after a line about the run."""
    info, rows = one.info, load_run(one.folder).requests.set_index("request_id")
    head = f"{info.run_id} {info.selector:13} {info.cache_slots:4} slots "
    if not one.skipped and rows["drafter_forced"].eq(True).any():
        one = replace(one, skipped="its committed ids are a script's (drafter.force)")
    if one.skipped:
        print(f"{head} not compared: {one.skipped}")
        return 0, 0
    ids = {
        name: [int(token) for token in rows.loc[name, "output_ids"]]
        for name in rows.index
        if name in one.requests and rows.loc[name, "status"] == "ok"
    }
    differ = [name for name in ids if ids[name] != outputs.of(one.requests[name])]
    caps = sorted({one.requests[name].max_new_tokens for name in ids})
    failed = int((rows["status"] != "ok").sum())
    print(
        f"{head} {len(ids) - len(differ)} of {len(ids)} requests equal to generate, at most "
        f"{', '.join(map(str, caps)) or 'no'} new tokens" + (f"; {failed} failed" * bool(failed))
    )
    for name in differ:
        request = one.requests[name]
        told = name_mismatch(outputs.load(), request, outputs.of(request), ids[name])
        print(f"    {name}: {told}")
    return len(ids), len(differ)


def main() -> int:
    """Exit code: 0 where every compared request is equal, 1 where one differs; 2, after a sentence,
    where nothing could be compared."""
    options = parse()
    config = config_of(options.overrides)
    spec = resolve(replace(config, cache_slots=0, device="cpu"))  # neither is looked at
    results = options.results or Path(spec.config.results_dir)
    runs = list(checked_runs(spec, results))
    load = partial(plain_model, spec.checkpoint.folder, spec.config.threads)
    outputs = Outputs(load, (request for one in runs for request in one.requests.values()))
    counts = [compare(one, outputs) for one in runs]
    compared, wrong = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
    if not compared:
        raise SpecfitError(
            f"nothing was compared: {len(runs)} finished runs of dataset="
            f"{spec.config.dataset.name} model={spec.config.model.name} below {results}/runs, and "
            "none has a request to compare; run one first, or give its results_dir"
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(script(main))
