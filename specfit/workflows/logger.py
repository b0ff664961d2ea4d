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
from types import TracebackType
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

Number = float | int
DRAWN = ("figures", "tables")  # below results_dir


class Logger(Watcher):
    """Use as a context manager around a run. With logger=none it does nothing."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec, self._config = spec, spec.config.logger
        self._results = Path(spec.config.results_dir)
        self._timed = "modelled" if spec.clock == "modelled" else "measured"
        self._run: Any = None
        self._seen = 0

    def __enter__(self) -> Logger:
        if self._config.name != "none":
            self._try(self._begin)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._run is not None:  # `finished` was not reached: the run failed
            self._try(lambda: self._run.finish(exit_code=1))

    def resumes(self, parts: Iterator[Part]) -> None:
        """This home is a new one: it gets what the process before has told to another."""
        for part in parts:
            self.finishes_request(part)

    def starts(self, total: int, done: int) -> None:
        self._seen = done

    def finishes_request(self, part: Part) -> None:
        if self._run is not None:
            metrics = {"request": self._seen, **request_metrics(part, self._timed)}
            self._try(lambda: self._run.log(metrics))
        self._seen += 1

    def finished(self, folder: Path) -> None:
        """A run that was found finished is logged as well: requests, table, rows and figures."""
        if self._run is not None and not self._seen:
            self.resumes(RunStore(folder.parent, folder.name).finished_parts())
        if self._run is not None:
            self._try(lambda: self._close(folder))

    # -- what is said to W&B ---------------------------------------------------------------------

    def _begin(self) -> None:
        import wandb

        spec, config = self._spec, self._config
        mode: Any = config.mode or os.environ.get("WANDB_MODE", "online")
        # Without a prompt: a question on the terminal would wait for ever.
        if mode == "online" and not wandb.login(prompt=False, verify=False):
            raise RuntimeError("not logged in; `wandb login`, or logger.mode=offline")
        self._results.mkdir(parents=True, exist_ok=True)
        self._run = wandb.init(
            project=config.project,
            entity=config.entity,
            mode=mode,
            name=f"{spec.config.selector.name}, {spec.slots} slots, {spec.config.dataset.name}",
            # What can be compared is one group: these requests, whatever decodes them.
            group=f"{spec.config.dataset.name} {joined_digest(spec.workload.digests)[:8]}",
            job_type=spec.config.selector.name,
            tags=[
                spec.config.model.name,
                spec.config.dataset.name,
                f"{spec.slots} slots",
                f"{spec.clock} clock",
                spec.profile.name,
            ],
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
        run_id = run.info.run_id
        lines = closing_table(run, baseline_of(run, self._results / "runs"), self._results)
        log.config.update({"run_id": run_id})
        log.summary.update(
            {one.label: one.value for one in lines if one.value is not None and one.label != "mark"}
        )
        table = [[line.label, line.shown] for line in lines]
        log.log({"closing table": wandb.Table(columns=["what", "value"], data=table)})
        rows = [folder / name for name in (*FILES, MANIFEST, "run.yaml")]
        for kind, files in (("rows", rows), ("drawn", sorted(drawn_from(run_id, self._results)))):
            there = [file for file in files if file.exists()]
            if there:
                artifact = wandb.Artifact(f"{kind}-{run_id}", type=kind)
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
            name = self._config.name
            print(
                f"specfit: logger {name} failed ({why}); the run goes on without it",
                file=sys.stderr,
            )


def request_metrics(part: Part, timed: str) -> dict[str, Number]:
    """Of one request by itself. `timed` (modelled or measured) stands before every time of the
    clock; what has no value is left out. A failed request counts and says nothing else."""
    record, decode = part.request, part.cycles[1:]
    if record.status != "ok":
        return {"failed": 1}
    tokens = sum(cycle.committed_tokens for cycle in decode)
    demand = sum(cycle.demand_experts for cycle in decode)
    assert record.prefill_ns is not None and record.decode_ns is not None
    values: dict[str, Number | None] = {
        "failed": 0,
        f"{timed}/tokens_per_s": ratio(tokens * 1e9, record.decode_ns),
        f"{timed}/prefill_s": record.prefill_ns / 1e9,
        f"{timed}/decode_s": record.decode_ns / 1e9,
        "committed_per_cycle": ratio(tokens, len(decode)),
        "verified_per_cycle": ratio(sum(cycle.verified_nodes for cycle in decode), len(decode)),
        "experts_per_token": ratio(sum(cycle.transferred_experts for cycle in decode), tokens),
        "hit_rate": ratio(sum(cycle.hit_experts for cycle in decode), demand),
        "prompt_tokens": record.prompt_tokens,
        "output_tokens": None if record.output_ids is None else len(record.output_ids),
        "elapsed_s": sum(timing.elapsed_ns for timing in part.timings) / 1e9,
        **{name: getattr(record, name) for name in MEASURES},
    }
    return {name: value for name, value in values.items() if value is not None}


def drawn_from(run_id: str, results: Path) -> Iterator[Path]:
    """Every format of each table and figure that names the run's id in one of them."""
    files = [path for name in DRAWN for path in (results / name).rglob("*") if path.is_file()]
    naming = {path.with_suffix("") for path in files if run_id.encode() in path.read_bytes()}
    yield from (path for path in files if path.with_suffix("") in naming)
