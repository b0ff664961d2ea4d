"""`logger=wandb`: a run is also written down at Weights & Biases, live.

W&B passes what is logged to a process of its own, so that a run does not wait for it; only its
start and its end are waited for, `logger.wait_s` at most. Whatever fails costs one sentence, and
the run goes on without the logger.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from specfit.data.examples import joined_digest
from specfit.decoding.spec import RunSpec
from specfit.report.metrics import MEASURES, ratio
from specfit.report.run_summary import closing_table
from specfit.storage.manifest import MANIFEST
from specfit.storage.request_files import Part
from specfit.storage.rows import baseline_of, load_run
from specfit.storage.run_folder import RunStore
from specfit.storage.tables import FILES
from specfit.workflows.execute import Watcher


class Logger(Watcher):
    """Use as a context manager around a run. With logger=none it does nothing."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec, self._config = spec, spec.config.logger
        self._results = Path(spec.config.results_dir)
        self._run: Any = None
        self._seen = 0

    def __enter__(self) -> Logger:
        if self._config.name != "none":
            self._try(self._begin)
        return self

    def __exit__(self, *_: object) -> None:
        if self._run is not None:  # `finished` was not reached: the run failed
            self._try(lambda: self._run.finish(exit_code=1))

    def resumes(self, parts: Iterator[Part]) -> None:
        """This W&B run is a new one: it gets the requests that another process has finished."""
        for part in parts:
            self.finishes_request(part)

    def starts(self, total: int, done: int) -> None:
        self._seen = done

    def finishes_request(self, part: Part) -> None:
        if self._run is not None:
            metrics = {"request": self._seen, **request_metrics(part, self._spec)}
            self._try(lambda: self._run.log(metrics))
        self._seen += 1

    def finished(self, folder: Path) -> None:
        """A run that was found finished is logged as well: requests, table, rows and figures."""
        if self._run is not None and not self._seen:
            self.resumes(RunStore(folder.parent, folder.name).finished_parts())
        if self._run is not None:
            self._try(lambda: self._close(folder))

    def _begin(self) -> None:
        import wandb

        spec, config = self._spec, self._config
        mode: Any = config.mode or os.environ.get("WANDB_MODE", "online")
        # Without a prompt: a question on the terminal would wait for ever.
        if mode == "online" and not wandb.login(prompt=False, verify=False):
            raise RuntimeError("not logged in; `wandb login`, or logger.mode=offline")
        self._results.mkdir(parents=True, exist_ok=True)
        dataset, selector, slots = spec.config.dataset.name, spec.config.selector.name, spec.slots
        where = f"{slots} slots"
        self._run = wandb.init(
            project=config.project,
            entity=config.entity,
            mode=mode,
            name=f"{selector}, {where}, {dataset}",
            # What can be compared is one group: these requests, whatever decodes them.
            group=f"{dataset} {joined_digest(spec.workload.digests)[:8]}",
            job_type=selector,
            tags=[spec.config.model.name, dataset, where, f"{spec.clock} clock", spec.profile.name],
            config=spec.settled() | {"clock": spec.clock, "device_name": spec.device_name},
            dir=str(self._results),
            reinit="create_new",  # jobs of one process log beside each other
            settings=wandb.Settings(
                silent=True,
                console="off",  # the screen is the run's
                disable_git=True,  # manifest.json has the commit
                x_disable_stats=True,  # sampling the machine would disturb what is measured
                init_timeout=config.wait_s,
                finish_timeout=config.wait_s,
                finish_timeout_raises=True,
            ),
        )
        self._run.define_metric("*", step_metric="request")
        self._where = str(self._run.url) if mode == "online" else mode
        if mode == "offline":
            self._where = f"wandb sync {self._run.settings.sync_dir}"

    def _close(self, folder: Path) -> None:
        import wandb

        log, run = self._run, load_run(folder)
        lines = closing_table(run, baseline_of(run, self._results / "runs"), self._results)
        log.config.update({"run_id": run.info.run_id})
        shown = [line for line in lines if line.value is not None and line.label != "mark"]
        log.summary.update({line.label: line.value for line in shown})
        table = [[line.label, line.shown] for line in lines]
        log.log({"closing table": wandb.Table(columns=["what", "value"], data=table)})
        rows = [folder / name for name in (*FILES, MANIFEST, "run.yaml")]
        for kind, files in (("rows", rows), ("drawn", drawn_from(run.info.run_id, self._results))):
            if there := [file for file in files if file.exists()]:
                artifact = wandb.Artifact(f"{kind}-{run.info.run_id}", type=kind)
                for file in there:
                    artifact.add_file(str(file))
                log.log_artifact(artifact)
        log.finish(exit_code=0)
        self._run = None
        print(f"logger {self._config.name}: {self._where}")

    def _try(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except Exception as error:  # of any kind that the library has
            self._run = None
            first = next(iter(str(error).strip().splitlines()), "")
            why = f"{type(error).__name__}: {first}" if first else type(error).__name__
            what = f"logger {self._config.name} failed ({why}); the run goes on without it"
            print(f"specfit: {what}", file=sys.stderr)


def request_metrics(part: Part, spec: RunSpec) -> dict[str, float]:
    """Of one request by itself; copies as billed. The clock's word (modelled or measured) stands
    before every time of it; what has no value is left out. A failed request is counted alone."""
    record, decode = part.request, part.cycles[1:]
    if record.status != "ok":
        return {"failed": 1}

    def total(name: str) -> int:
        return sum(getattr(cycle, name) for cycle in decode)

    assert record.prefill_ns is not None and record.decode_ns is not None
    tokens, timed = total("committed_tokens"), spec.timed
    values: dict[str, float | None] = {
        "failed": 0,
        f"{timed}/tokens_per_s": ratio(tokens * 1e9, record.decode_ns),
        f"{timed}/prefill_s": record.prefill_ns / 1e9,
        f"{timed}/decode_s": record.decode_ns / 1e9,
        "committed_per_cycle": ratio(tokens, len(decode)),
        "verified_per_cycle": ratio(total("verified_nodes"), len(decode)),
        "experts_per_token": ratio(spec.billing.layer_scale * total("transferred_experts"), tokens),
        "hit_rate": ratio(total("hit_experts"), total("demand_experts")),
        "prompt_tokens": record.prompt_tokens,
        "output_tokens": None if record.output_ids is None else len(record.output_ids),
        "elapsed_s": sum(timing.elapsed_ns for timing in part.timings) / 1e9,
        **{name: getattr(record, name) for name in MEASURES},
    }
    return {name: value for name, value in values.items() if value is not None}


def drawn_from(run_id: str, results: Path) -> list[Path]:
    """Every format of each table and figure that names the run's id in one of them."""
    below = sorted((results / "figures").rglob("*")) + sorted((results / "tables").rglob("*"))
    files = [path for path in below if path.is_file()]
    naming = {drawing_of(path) for path in files if run_id.encode() in path.read_bytes()}
    return [path for path in files if drawing_of(path) in naming]


def drawing_of(file: Path) -> Path:
    """Without what tells its formats apart, as in figure_2.narrow.svg."""
    return file.with_name(file.name.partition(".")[0])
