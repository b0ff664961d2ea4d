"""`logger=wandb` around whole runs, without a network: what is kept, and what a failure costs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from specfit.workflows.logger import drawn_from, request_metrics
from tests.fakes.rows import part
from tests.fakes.tiny_model import Command, JobResult, Runnable

BILLED = SimpleNamespace(layer_scale=6)
MODELLED: Any = SimpleNamespace(timed="modelled", billing=BILLED)
SMALL = ("selector=ar_cache", "limit=2", "max_new_tokens=4", "cache_slots=4")


class FakeRun:
    """Remembers what a wandb run is told."""

    def __init__(self, **given: Any) -> None:
        self.given, self.logged, self.summary, self.artifacts = given, [], {}, {}
        self.settings = SimpleNamespace(sync_dir="folder")
        self.config: dict[str, Any] = dict(given["config"])
        self.url, self.exit_code = "https://example.org/run", None

    def define_metric(self, name: str, step_metric: str) -> None:
        assert (name, step_metric) == ("*", "request")

    def log(self, values: dict[str, Any]) -> None:
        self.logged.append(values)

    def log_artifact(self, artifact: Any) -> None:
        self.artifacts[artifact.name] = artifact.files

    def finish(self, exit_code: int) -> None:
        self.exit_code = exit_code


class FakeArtifact:
    def __init__(self, name: str, type: str) -> None:
        self.name, self.files = name, []

    def add_file(self, path: str) -> None:
        self.files.append(Path(path).name)


class FakeWandb(SimpleNamespace):
    Artifact, Settings = FakeArtifact, dict

    def __init__(self, logged_in: bool = True) -> None:
        super().__init__(runs=[], logged_in=logged_in)

    def login(self, prompt: bool, verify: bool) -> bool:
        assert not prompt, "a question would wait for ever"
        assert not verify, "the network is asked once, by init"
        return self.logged_in

    def init(self, **given: Any) -> FakeRun:
        self.runs.append(FakeRun(**given))
        return self.runs[-1]

    @staticmethod
    def Table(columns: list[str], data: list[list[str]]) -> list[list[str]]:
        return data


Log = Any


@pytest.fixture
def log(command: Command, runnable: Runnable, tmp_path: Path) -> Log:
    def run(*overrides: str) -> JobResult:
        where = f"results_dir={tmp_path / 'results'}"
        return command(*runnable.overrides, *SMALL, where, *overrides)

    return run


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeWandb:
    import sys

    made = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", made)  # type: ignore[arg-type]
    return made


def test_what_is_kept(log: Log, fake: FakeWandb, tmp_path: Path) -> None:
    ended = log("logger=wandb", "logger.mode=online")
    assert (ended.code, ended.err) == (0, "")
    assert "logger wandb: https://example.org/run" in ended.out
    (run,) = fake.runs
    assert run.given["name"] == "ar_cache, 4 slots, embedded_gsm8k"
    assert run.given["job_type"] == "ar_cache"
    assert {"embedded_gsm8k", "4 slots", "modelled clock", "paper_main"} < set(run.given["tags"])
    assert run.config["cache_slots"] == 4 and run.config["selector"]["name"] == "ar_cache"
    assert run.config["clock"] == "modelled" and len(run.config["run_id"]) == 12
    requests = [values for values in run.logged if "request" in values]
    assert [values["request"] for values in requests] == [0, 1]
    assert all(values["modelled/tokens_per_s"] > 0 for values in requests)
    (table,) = [values["closing table"] for values in run.logged if "closing table" in values]
    assert table[0][0] == "decode speed" and table[0][1].endswith("tokens/s (modelled)")
    assert run.summary["requests"] == 2
    (rows,) = run.artifacts.values()
    assert set(rows) == {
        *("cycles.parquet", "requests.parquet", "timings.parquet", "manifest.json", "run.yaml")
    }
    assert run.exit_code == 0


def test_a_sweeps_runs_are_one_group_by_their_requests(log: Log, fake: FakeWandb) -> None:
    for words in (("selector=ar",), ("cache_slots=8",), ("dataset=embedded_news",)):
        log("logger=wandb", "logger.mode=online", "compare=false", *words)
    ar, cached, news = (run.given for run in fake.runs)
    assert ar["group"] == cached["group"] != news["group"]
    assert ar["group"].startswith("embedded_gsm8k ") and news["group"].startswith("embedded_news ")
    assert (ar["job_type"], cached["job_type"]) == ("ar", "ar_cache")
    assert "8 slots" in cached["tags"] and "0 slots" in ar["tags"]


def test_a_found_run_is_logged_with_what_was_drawn_since(
    log: Log, fake: FakeWandb, tmp_path: Path
) -> None:
    """And under the same id: the logger is no part of it."""
    plain = log()
    run_id = Path(plain.out.splitlines()[-1].removeprefix("rows: ")).name
    figures = tmp_path / "results" / "figures"
    figures.mkdir()
    (figures / "figure_9.svg").write_text(f"runs {run_id}")
    ended = log("logger=wandb", "logger.mode=online", "logger.project=other")
    assert "found finished" in ended.out and f"run {run_id}" in ended.out
    assert fake.runs[0].artifacts[f"drawn-{run_id}"] == ["figure_9.svg"]
    requests = [values for values in fake.runs[0].logged if "request" in values]
    assert [values["request"] for values in requests] == [0, 1]


def test_a_resumed_runs_logger_gets_every_request(
    log: Log, fake: FakeWandb, monkeypatch: pytest.MonkeyPatch
) -> None:
    import specfit.workflows.execute as execute

    serve = execute.Job._serve

    def dies(self: execute.Job, index: int, watcher: execute.Watcher) -> object:
        if index:
            raise KeyboardInterrupt
        return serve(self, index, watcher)

    monkeypatch.setattr(execute.Job, "_serve", dies)
    assert log("logger=wandb", "logger.mode=online").code == 130
    monkeypatch.setattr(execute.Job, "_serve", serve)
    assert log("logger=wandb", "logger.mode=online").code == 0
    first, second = ([v for v in run.logged if "request" in v] for run in fake.runs)
    assert [values["request"] for values in second] == [0, 1]
    assert second[0] == first[0], "as it was told the first time"


def test_a_run_that_is_refused_ends_as_failed(log: Log, fake: FakeWandb) -> None:
    ended = log("logger=wandb", "logger.mode=online", "selector=eagle3", "drafter.path=/nowhere")
    assert ended.code == 2
    assert fake.runs[0].exit_code == 1


FAILURES = {
    "not logged in": "(RuntimeError: not logged in; `wandb login`, or logger.mode=off",
    "init": "(ValueError: no room); the run goes on without it",
    "log": "(OSError: gone); the run goes on without it",
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_costs_one_sentence(
    log: Log, fake: FakeWandb, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(error: Exception) -> Any:
        def call(*_: Any, **__: Any) -> None:
            raise error

        return call

    if failure == "init":
        monkeypatch.setattr(FakeWandb, "init", raises(ValueError("no room")))
    elif failure == "log":
        monkeypatch.setattr(FakeRun, "log", raises(OSError("gone")))
    else:
        fake.logged_in = False
    ended = log("logger=wandb", "logger.mode=online")
    assert ended.code == 0 and "decode speed" in ended.out
    assert ended.sentence.startswith("logger wandb failed " + FAILURES[failure])


def test_a_wrong_mode_is_refused_before_anything_runs(log: Log, tmp_path: Path) -> None:
    ended = log("logger=wandb", "logger.mode=loud")
    assert ended.code == 2
    assert ended.sentence == "logger.mode is 'loud'; use one of online, offline, disabled"
    assert not (tmp_path / "results").exists()


# -- the real library, offline ---------------------------------------------------------------------


def test_wandb_offline_leaves_a_folder_to_upload(log: Log, tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed")
    ended = log("logger=wandb", "logger.mode=offline")
    assert (ended.code, ended.err) == (0, "")
    (line,) = [line for line in ended.out.splitlines() if line.startswith("logger wandb: ")]
    folder = Path(line.removeprefix("logger wandb: wandb sync "))
    assert folder.parent == tmp_path / "results" / "wandb"
    (stored,) = folder.glob("*.wandb")
    kept = stored.read_bytes()
    run_id = Path(ended.out.splitlines()[-1].removeprefix("rows: ")).name
    assert f"rows-{run_id}".encode() in kept and b"modelled/tokens_per_s" in kept
    (table,) = folder.rglob("*.table.json")
    assert json.loads(table.read_text())["data"][0][0] == "decode speed"


def test_wandb_disabled_leaves_nothing(log: Log, tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed")
    ended = log("logger=wandb", "logger.mode=disabled")
    assert (ended.code, ended.err) == (0, "") and "logger wandb: disabled" in ended.out
    assert not list((tmp_path / "results").rglob("*.wandb"))


def test_wandb_takes_records_while_its_own_process_stands_still(tmp_path: Path) -> None:
    """So the run needs no queue of its own: a hundred requests do not wait for it."""
    wandb = pytest.importorskip("wandb", reason="wandb is not installed")
    settings = wandb.Settings(silent=True, console="off", x_disable_stats=True)
    run = wandb.init(mode="offline", dir=str(tmp_path), settings=settings, reinit="create_new")
    family = ["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())]
    children = subprocess.run(family, capture_output=True, text=True, check=True).stdout
    pids = [int(line.split()[0]) for line in children.splitlines() if "wandb" in line]
    assert pids, children
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    wakes = threading.Timer(20, lambda: [os.kill(pid, signal.SIGCONT) for pid in pids])
    wakes.start()
    try:
        for number in range(100):
            run.log({"request": number, **request_metrics(part("a", (1, 4, 2)), MODELLED)})
        assert wakes.is_alive(), "no record waited until the process was awake again"
    finally:
        wakes.cancel()
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    run.finish()
    (stored,) = (tmp_path / "wandb").rglob("*.wandb")
    assert b"modelled/tokens_per_s" in stored.read_bytes()


# -- what is said of one request -------------------------------------------------------------------


def test_one_request_by_hand() -> None:
    """Two decode cycles that commit 4 and 2; the counters of a cycle are hand_made's own."""
    one = part("a", (1, 4, 2))
    found = request_metrics(one, MODELLED)
    decode_ns = sum(cycle.cycle_ns for cycle in one.cycles[1:])
    assert found["modelled/tokens_per_s"] == pytest.approx(6 / (decode_ns / 1e9))
    assert found["modelled/prefill_s"] == one.cycles[0].cycle_ns / 1e9
    assert found["committed_per_cycle"] == 3
    assert (found["prompt_tokens"], found["output_tokens"], found["score"]) == (10, 7, 1.0)
    copies = sum(cycle.transferred_experts for cycle in one.cycles[1:])
    assert found["experts_per_token"] == pytest.approx(6 * copies / 6), "six layers for one"
    assert found["failed"] == 0
    assert "rouge1" not in found, "what has no value is left out"


def test_every_time_of_the_clock_carries_its_word() -> None:
    for word in ("modelled", "measured"):
        names = request_metrics(part("a"), SimpleNamespace(timed=word, billing=BILLED))  # type: ignore[arg-type]
        times = {name for name in names if name.endswith(("_s", "_ns"))}
        assert times == {f"{word}/tokens_per_s", f"{word}/prefill_s", f"{word}/decode_s"} | {
            "elapsed_s"
        }


def test_a_request_without_decode_cycles_has_no_ratio() -> None:
    found = request_metrics(part("a", (1,)), MODELLED)
    assert not {"modelled/tokens_per_s", "committed_per_cycle", "hit_rate"} & set(found)


def test_a_failed_request_counts_and_says_nothing_else() -> None:
    assert request_metrics(part("a", status="too long"), MODELLED) == {"failed": 1}


def test_figures_and_tables_that_name_the_run_in_any_format(tmp_path: Path) -> None:
    for name, text in {
        "figures/figure_2.svg": "runs abc123",
        "figures/figure_2.png": "\x00",
        "figures/figure_3.svg": "runs def456",
        "tables/table_2.md": "abc123",
        "runs/table_2.md": "abc123",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = sorted(str(path.relative_to(tmp_path)) for path in drawn_from("abc123", tmp_path))
    assert found == ["figures/figure_2.png", "figures/figure_2.svg", "tables/table_2.md"]
