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
from pathlib import Path

import torch
from near_ties import closest, plain_model
from transformers import PreTrainedModel

from specfit.base.config import from_hydra
from specfit.base.types import Request
from specfit.decoding.resolve import resolve
from specfit.storage.find import finished_runs
from specfit.storage.rows import load_run
from specfit.workflows.hydra_cli import compose


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=Path("results"))
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


def main() -> int:
    options = parse()
    spec = resolve(from_hydra(compose(options.overrides)))
    model = plain_model(spec.checkpoint.folder, spec.config.threads)
    workload = spec.workload
    requests = {name: workload.request(index) for index, name in enumerate(workload.ids)}
    expected = {name: generate(model, request) for name, request in requests.items()}
    wrong = 0
    wanted = {"dataset": spec.config.dataset.name, "model": spec.config.model.name}
    for folder, manifest in finished_runs(options.results / "runs", **wanted):
        outputs = load_run(folder).requests.set_index("request_id")["output_ids"]
        ids = {name: [int(t) for t in outputs[name]] for name in outputs.index if name in expected}
        differ = [name for name in ids if ids[name] != expected[name]]
        info = manifest.info
        print(
            f"{info.run_id} {info.selector:13} {info.cache_slots:4} slots  "
            f"{len(ids) - len(differ)} of {len(ids)} requests equal to generate"
        )
        for name in differ:
            print(f"    {name}: {name_mismatch(model, requests[name], expected[name], ids[name])}")
        wrong += len(differ)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
