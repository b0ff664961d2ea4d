"""Tokens a second of plain greedy decoding: this engine, transformers, and llama.cpp if installed.

    python scripts/bench/generate.py [--requests 3] [--tokens 64] [--rounds 5]

One process, one thread, the same prompts, the embedded pair with every expert resident. The engines
take turns within a round, so that what the machine does meanwhile does it to all of them; figures
are medians over rounds and are compared within one run only. Every engine's ids are compared with
this engine's. llama.cpp runs a GGUF that scripts/device/export_gguf.py writes from the same
checkpoint.
Leaves results/bench/generate.json.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from specfit.base.entry import script  # noqa: E402

Ids = list[int]
Engine = Callable[[Sequence[int], int], Ids]
"""Prompt ids and how many to say -> the ids said."""

LLAMA = "llama.cpp"
VERIFY_ROWS = 8
VERIFY_TRIES = 60


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "bench" / "generate.json")
    options = parser.parse_args()
    from specfit.storage.atomic import write_json
    from specfit.storage.provenance import collect

    with tempfile.TemporaryDirectory(prefix="specfit-gguf-") as scratch:
        result = compare(options, Path(scratch))
    result["provenance"] = collect().as_dict()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(options.out, result)
    print(shown(result))
    return 0


def compare(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    runtimes = {name: runtime_of(name) for name in ("compiled", "loop")}
    prompts = [list(ids) for ids in prompts_of(runtimes["compiled"], options.requests)]
    engines: dict[str, Engine] = {f"specfit, {k}": ours(r) for k, r in runtimes.items()}
    engines |= transformers_engines(runtimes["compiled"])
    engines |= llama_engine(runtimes["compiled"], scratch)
    speeds, equal = take_turns(engines, prompts, options.tokens, options.rounds)
    best = max(v for name, v in speeds.items() if name.startswith("transformers"))
    return {
        "tokens_per_s": speeds,
        "ratio_to_best_of_transformers": {name: v / best for name, v in speeds.items()},
        "ids_equal": equal,
        "requests": len(prompts),
        "tokens": options.tokens,
        "rounds": options.rounds,
        "threads": 1,
        "verify_ms": {name: verify_ms(r, prompts[0]) for name, r in runtimes.items()},
    }


def take_turns(
    engines: dict[str, Engine], prompts: list[Ids], tokens: int, rounds: int
) -> tuple[dict[str, float], dict[str, str]]:
    """Median tokens a second of each, and on how many prompts its ids are the first engine's."""
    said = {
        name: [engine(prompt, tokens) for prompt in prompts] for name, engine in engines.items()
    }
    first = next(iter(said.values()))
    seen: dict[str, list[float]] = {name: [] for name in engines}
    for turn in range(rounds):
        order = list(engines) if turn % 2 == 0 else list(engines)[::-1]
        for name in order:
            begin, count = time.perf_counter(), 0
            for prompt in prompts:
                count += len(engines[name](prompt, tokens))
            seen[name].append(count / (time.perf_counter() - begin))
    equal = {
        name: f"{sum(map(list.__eq__, ids, first))} of {len(first)}" for name, ids in said.items()
    }
    return {name: statistics.median(values) for name, values in seen.items()}, equal


# -- engines -------------------------------------------------------------------------------------


def runtime_of(kernel: str) -> Any:
    """The embedded pair on this CPU, every expert resident."""
    from specfit.decoding import live
    from specfit.decoding.resolve import resolve
    from specfit.workflows.hydra_cli import config_of

    overrides = ["selector=ar_cache", "cache_slots=all", "gpu=local", "device=cpu"]
    config = config_of([*overrides, f"gpu.kernel={kernel}"])
    spec = resolve(config)
    live._kept.clear()  # each has dense weights and slots of its own
    return live.build_runtime(spec, spec.slots, drafts=False)


def prompts_of(runtime: Any, count: int) -> list[Ids]:
    from specfit.decoding.spec import answerable

    return [r.prompt_ids.tolist() for r in answerable(runtime.spec.workload)[:count]]


def ours(runtime: Any) -> Engine:
    import numpy as np

    from specfit.base.types import DraftTree, Selection
    from specfit.models.target.config_file import stop_ids

    checkpoint = runtime.spec.checkpoint
    target, stops = runtime.target, stop_ids(checkpoint.folder, checkpoint.config)

    def say(prompt: Sequence[int], tokens: int) -> Ids:
        target.begin()
        ids = [target.prefill(np.asarray(prompt)).token]
        while len(ids) < tokens and ids[-1] not in stops:
            ids.append(int(target.verify(ids[-1], DraftTree.empty(), Selection(())).tokens[0]))
            target.keep([0])
        return ids

    return say


def transformers_engines(runtime: Any) -> dict[str, Engine]:
    """Each way that transformers has to run the experts, and its assisted generation (a prompt
    look-up, which needs no second model)."""
    import torch
    from transformers import AutoModelForCausalLM

    folder = runtime.spec.checkpoint.folder
    engines: dict[str, Engine] = {}

    def saying(model: Any, **more: Any) -> Engine:
        def say(prompt: Sequence[int], tokens: int) -> Ids:
            ids = torch.tensor([list(prompt)])
            with torch.inference_mode():
                out = model.generate(
                    ids,
                    attention_mask=torch.ones_like(ids),
                    do_sample=False,
                    max_new_tokens=tokens,
                    **more,
                )
            return list(out[0, len(prompt) :].tolist())

        return say

    for experts in ("eager", "batched_mm", "grouped_mm"):
        try:
            model = AutoModelForCausalLM.from_pretrained(
                folder, local_files_only=True, dtype=torch.float32, experts_implementation=experts
            ).eval()
            saying(model)([5, 6, 7], 2)
        except Exception as error:  # an older release has no such way, or not on a CPU
            print(f"transformers, {experts}: not run ({type(error).__name__})", file=sys.stderr)
            continue
        engines[f"transformers, {experts}"] = saying(model)
        if experts == "batched_mm":
            engines["transformers, assisted (prompt look-up)"] = saying(
                model, prompt_lookup_num_tokens=5
            )
    return engines


def llama_engine(runtime: Any, scratch: Path) -> dict[str, Engine]:
    try:
        from llama_cpp import Llama
    except ImportError:
        print("llama.cpp: not run (package llama-cpp-python is not installed)", file=sys.stderr)
        return {}
    from scripts.device.export_gguf import export
    from specfit.models.target.config_file import stop_ids

    checkpoint = runtime.spec.checkpoint
    path = export(checkpoint.folder, scratch / "model.gguf")
    model = Llama(str(path), n_ctx=1024, n_threads=1, n_threads_batch=1, verbose=False)
    stops = stop_ids(checkpoint.folder, checkpoint.config)

    def say(prompt: Sequence[int], tokens: int) -> Ids:
        ids: Ids = []
        for token in model.generate(list(prompt), temp=0.0, top_k=1, repeat_penalty=1.0):
            ids.append(token)
            if len(ids) >= tokens or token in stops:
                break
        return ids

    return {LLAMA: say}


# -- one verify ------------------------------------------------------------------------------------


def verify_ms(runtime: Any, prompt: Ids) -> dict[str, float]:
    """Median milliseconds of a forward of one row and of a tree of eight, after the prompt."""
    import numpy as np

    from specfit.base.types import DraftTree, Selection

    nodes = VERIFY_ROWS - 1
    parents = np.array([-1, -1, 0, 0, 1, 1, 2])
    depths, probs = np.array([1, 1, 2, 2, 2, 2, 3]), np.arange(nodes, 0, -1)
    tree = DraftTree(np.arange(20, 20 + nodes), parents, depths, probs)
    runtime.target.begin()
    runtime.target.prefill(np.asarray(prompt))
    cases = {"1": (DraftTree.empty(), Selection(())), "8": (tree, Selection(tuple(range(nodes))))}
    seen: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(VERIFY_TRIES):
        for name, (drafted, selection) in cases.items():
            begin = time.perf_counter()
            runtime.target.verify(42, drafted, selection)
            seen[name].append(1e3 * (time.perf_counter() - begin))
    return {name: statistics.median(values) for name, values in seen.items()}


def shown(result: dict[str, Any]) -> str:
    lines = [f"{'engine':42} tokens/s   to transformers' best   ids equal"]
    for name, speed in result["tokens_per_s"].items():
        ratio = result["ratio_to_best_of_transformers"][name]
        lines.append(f"{name:42} {speed:8.1f}   {ratio:21.2f}   {result['ids_equal'][name]}")
    for name, ms in result["verify_ms"].items():
        ratio = ms["8"] / ms["1"]
        lines.append(
            f"verify, {name}: 1 row {ms['1']:.2f} ms, 8 rows {ms['8']:.2f} ms, {ratio:.2f} times"
        )
    if (llama := result["tokens_per_s"].get(LLAMA)) is not None:
        ours = {k: v for k, v in result["tokens_per_s"].items() if k.startswith("specfit")}
        lines += [f"{name}: {speed / llama:.2f} of {LLAMA}" for name, speed in ours.items()]
    how = f"n = {result['requests']} prompts, median of {result['rounds']} rounds"
    return "\n".join([*lines, f"{how}, wall clock, measured, 1 thread"])


if __name__ == "__main__":
    sys.exit(script(main))
