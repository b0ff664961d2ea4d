"""Are the ids of every finished run the target's own? Compares them with plain `generate`.

    python scripts/check_ids.py --dataset embedded_gsm8k

Runs `transformers`' greedy `generate` (fp32, no offload, no specfit code but the prompts) on the
requests of the dataset and compares each finished run's rows with it. Prints one line per run, and
for a mismatch its first token with the margin between the two best logits there.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from specfit.commands import compose
from specfit.config import from_hydra
from specfit.core import Request
from specfit.resolve import Resolved, resolve
from specfit.results.find import finished_runs
from specfit.results.rows import load_run


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("overrides", nargs="*", help="dataset=..., dataset.path=..., limit=...")
    return parser.parse_args()


def own_ids(facts: Resolved) -> dict[str, list[int]]:
    """Request id -> what plain transformers generates for it."""
    torch.set_num_threads(facts.config.threads)
    model = AutoModelForCausalLM.from_pretrained(facts.checkpoint.folder, dtype=torch.float32)
    prompting = facts.prompting(facts.config.dataset, facts.config.new_tokens)
    return {e.example_id: generate(model, prompting.request(e)) for e in facts.examples}


@torch.inference_mode()
def generate(model: torch.nn.Module, request: Request) -> list[int]:
    prompt = torch.from_numpy(request.prompt_ids)[None]
    output = model.generate(  # type: ignore[operator]
        prompt,
        attention_mask=torch.ones_like(prompt),
        do_sample=False,
        max_new_tokens=request.max_new_tokens,
        eos_token_id=sorted(request.stop_ids),
    )
    return output[0, prompt.shape[1] :].tolist()


def main() -> int:
    options = parse()
    facts = resolve(from_hydra(compose(options.overrides)))
    expected = own_ids(facts)
    wrong = 0
    wanted = {"dataset": facts.config.dataset.name, "model": facts.config.model.name}
    for folder, manifest in finished_runs(options.results / "runs", **wanted):
        outputs = load_run(folder).requests.set_index("request_id")["output_ids"]
        shared = [name for name in outputs.index if name in expected]
        differ = [n for n in shared if [int(t) for t in outputs[n]] != expected[n]]
        info = manifest.info
        print(
            f"{info.run_id} {info.selector:13} {info.cache_slots:4} slots  "
            f"{len(shared) - len(differ)} of {len(shared)} requests equal to generate"
            + (f"; first difference in {differ[0]}" if differ else "")
        )
        wrong += len(differ)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
