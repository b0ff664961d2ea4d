"""The texts an oracle drafts: what the `ar` run of the same requests wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from specfit.base.config import SelectorConfig
from specfit.base.types import RequestError, SpecfitError
from specfit.decoding.resolve import LiveRunSpec, resolve
from specfit.decoding.spec import RunSpec
from specfit.models.drafter.oracle import Scripts
from specfit.storage import identity
from specfit.storage.rows import load_run

ORACLE = "oracle"


def is_scripted(spec: RunSpec) -> bool:
    return spec.kind.drafts and spec.config.drafter.name == ORACLE


def ar_facts(spec: RunSpec) -> LiveRunSpec:
    """The run of plain decoding whose ids are the script."""
    config = spec.config
    plain = replace(config, selector=SelectorConfig("ar", k=0), trace=None, force=False)
    return resolve(plain)


def script_folder(plain: LiveRunSpec) -> Path:
    run_id = identity.run_id(plain.identity(None))
    return Path(plain.config.results_dir) / "runs" / run_id


def make_script(
    spec: RunSpec, run: Callable[[LiveRunSpec], None], say: Callable[[str], None]
) -> None:
    """Before an oracle drafts: `run` the plain decoding where it has not been, off every clock."""
    plain = ar_facts(spec)
    folder = script_folder(plain)
    if not (folder / "requests.parquet").exists():
        say(f"drafter=oracle drafts what selector=ar writes: running that first, into {folder}")
        run(plain)


def scripts_of(spec: LiveRunSpec) -> Scripts:
    folder = script_folder(ar_facts(spec))
    if not (folder / "requests.parquet").exists():
        raise SpecfitError(
            f"drafter=oracle drafts what selector=ar wrote, and {folder} is no finished run; "
            "run the same command with selector=ar first"
        )
    rows = load_run(folder).requests.set_index("request_id")["output_ids"]
    scripts: dict[tuple[int, ...], list[int]] = {}
    for index, request_id in enumerate(spec.workload.ids):
        try:
            prompt = spec.workload.request(index).prompt_ids
        except RequestError:
            continue  # it fails in this run as it failed in that one
        scripts[tuple(int(token) for token in prompt)] = [int(t) for t in rows[request_id]]
    return scripts
