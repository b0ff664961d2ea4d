"""Suites run for real on a tiny pair: every shipped one at its smoke size, and what is repeated."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import specfit.decoding.calibration.trials
import specfit.workflows.execute
from specfit.base.config import from_hydra
from specfit.base.types import SpecfitError
from specfit.storage.rows import load_run
from specfit.storage.suite import find_suite, read_suite
from specfit.workflows.hydra_cli import compose
from specfit.workflows.suites.files import choices, read_suite_file, suite_names
from specfit.workflows.suites.planning import Plan, Wanted, plan_suites
from specfit.workflows.suites.running import run_all, todo
from tests.fakes.tiny_model import JobResult, Runnable, in_process_script, make_runnable
from tests.models.routes.predictors import write_files

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "experiments"
MANY_CELLS = 20
REFITTING = ("sweep", "map", "advice")
PROBES = "measured"
QUANTISED = "measured_formats"
READS_FILE = re.compile(r"routes=(learned|token_table)")
ONE = """
common: limit=2 max_new_tokens=5 cache_slots=4
smoke: limit=1
groups:
  - kind: run
    axes:
      - {gsm8k: dataset=embedded_gsm8k}
      - {ar: selector=ar, ar_cache: selector=ar_cache}
"""

Planner = Callable[..., Plan]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Runnable:
    """As many experts as the real one, so that 48 slots are some of them."""
    return make_runnable(tmp_path_factory.mktemp("pair"), experts=128)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shipped suites share runs, recordings and fits, as they do in `make reproduce`."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture
def two_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit from 32 probes instead of 144: how good it is does not matter here. Recordings hold the
    whole questions: policies and prices read further than these probes do."""
    import_module("specfit.workflows.recording.batches")  # whose own copies stay whole
    monkeypatch.setattr(specfit.decoding.calibration.trials, "QUESTIONS", 2)
    monkeypatch.setattr(
        specfit.decoding.calibration.trials,
        "POSITIONS",
        specfit.decoding.calibration.trials.POSITIONS[:1],
    )


@pytest.fixture(scope="module")
def predictors(pair: Runnable) -> Path:
    """Files of routes=learned and routes=token_table for this pair, untrained."""
    from specfit.decoding.resolve import resolve

    spec = resolve(from_hydra(compose(pair.overrides)))
    digests = {"target": spec.target_digest, "drafter": spec.drafter_digest}
    shape = spec.geometry
    sizes = (shape.vocabulary, shape.layers, shape.experts, shape.top_k)
    return write_files(pair.target.parent / "routes", digests, shape.hidden, sizes)


def told_where(name: str, files: Path) -> list[str]:
    """The overrides that point every cell which reads a predictor to these files."""
    names: set[str] = set()
    for group in read_suite_file(name, SHIPPED).groups:
        for axis in group.axes:
            names |= {key for key, line in axis.items() if READS_FILE.search(line)}
        if READS_FILE.search(group.common):
            names |= set(group.axes[-1])
    return [f"{one}:routes.path={files}" for one in sorted(names)]


def shipped() -> Iterator[Any]:
    """Those of many cells are slow: mostly composing a hundred configs; so are those whose studies
    fit again in a process of their own, from all of the states, and the one that runs the shipped
    pair."""
    for name in suite_names(SHIPPED):
        cells = sum(len(list(choices(g))) for g in read_suite_file(name, SHIPPED).groups)
        is_slow = cells > MANY_CELLS or name in (*REFITTING, QUANTISED)
        yield pytest.param(name, marks=[pytest.mark.slow] if is_slow else [])


@pytest.mark.parametrize("name", list(shipped()))
def test_every_shipped_suite_runs(
    name: str,
    pair: Runnable,
    predictors: Path,
    shared: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # of quantised copies
    if name in REFITTING:  # fits of its own, which no other suite shares
        shared = tmp_path
    else:
        request.getfixturevalue("two_states")
    arguments = (*pair.overrides, *told_where(name, predictors))
    if name == QUANTISED:  # the shipped pair: a random one is narrower than a group of int4
        arguments = ()
    wanted, said = Wanted("smoke", arguments, results=shared), list[str]()
    (plan,) = plan_suites([name], wanted, SHIPPED)
    assert not plan.refused or name == PROBES, "only a probe's file may be waited for"
    while left := todo([plan], shared):
        assert not run_all(left, shared, said.append), said
        (plan,) = plan_suites([name], wanted, SHIPPED) if plan.may_grow else (plan,)
    assert not plan.refused

    plan.suite.write(shared)
    found = find_suite(name, shared, plan.suite.variant)
    assert found.is_preview and found.suite == plan.suite
    for cell in plan.suite.cells:
        if cell.kind == "bench":
            assert json.loads(cell.path(shared).read_text())
        else:
            assert load_run(cell.path(shared)).ok_ids
    assert not todo([plan], shared)


# -- one small suite -------------------------------------------------------------------------------


@pytest.fixture
def planner(runnable: Runnable, tmp_path: Path) -> Planner:
    experiments = tmp_path / "experiments"
    experiments.mkdir()
    (experiments / "one.yaml").write_text(ONE)

    def plan(*arguments: str) -> Plan:
        wanted = Wanted(arguments=(*runnable.overrides, *arguments), results=tmp_path)
        return plan_suites(["one"], wanted, experiments)[0]

    return plan


def test_a_failing_cell_stops_no_other(
    planner: Planner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    serve = specfit.workflows.execute.Job._serve
    failures = [ZeroDivisionError("a defect"), SpecfitError("this one cannot")]

    def breaks(self: specfit.workflows.execute.Job, *arguments: object) -> object:
        if self._spec.config.selector.name == "ar":
            raise failures.pop()
        return serve(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(specfit.workflows.execute.Job, "_serve", breaks)
    plan = planner()
    while failures:
        failed = run_all(todo([plan], tmp_path), tmp_path, lambda text: None)
        assert [one.cell.label for one in failed] == ["gsm8k/ar"]
        assert failed[0].why in ("this one cannot", "a defect, ZeroDivisionError: a defect")
    error = capsys.readouterr().err
    assert "specfit: this one cannot" in error and "ZeroDivisionError: a defect" in error
    assert plan.planned[1].cell.is_there(tmp_path)


def test_an_interrupted_suite_goes_on_after_its_last_request(
    planner: Planner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve, served = specfit.workflows.execute.Job._serve, []

    def counts(self: specfit.workflows.execute.Job, index: int, watcher: object) -> object:
        served.append((self._spec.config.selector.name, index))
        if len(served) == 4:
            raise KeyboardInterrupt
        return serve(self, index, watcher)  # type: ignore[arg-type]

    monkeypatch.setattr(specfit.workflows.execute.Job, "_serve", counts)
    plan = planner()
    with pytest.raises(KeyboardInterrupt):
        run_all(todo([plan], tmp_path), tmp_path, lambda text: None)
    assert not run_all(todo([plan], tmp_path), tmp_path, lambda text: None)
    whole = [("ar", 0), ("ar", 1), ("ar_cache", 0)]
    assert served == [*whole, ("ar_cache", 1), ("ar_cache", 1)], "the third call is repeated alone"


def test_jobs_of_a_launcher_leave_the_rows_of_this_process(
    planner: Planner, tmp_path: Path
) -> None:
    from specfit.workflows.suites.launching import launch

    plan = planner()
    launch(plan.planned, tmp_path, "basic", [])
    assert not todo([plan], tmp_path)
    here = [(one.cell.path(tmp_path) / "cycles.parquet").read_bytes() for one in plan.planned]
    (tmp_path / "runs").rename(tmp_path / "launched")
    assert not run_all(todo([plan], tmp_path), tmp_path, lambda text: None)
    again = [(one.cell.path(tmp_path) / "cycles.parquet").read_bytes() for one in plan.planned]
    assert here == again
    with pytest.raises(SpecfitError, match="hydra/launcher=nope"):
        launch(plan.planned, tmp_path, "nope", [])


# -- the commands ----------------------------------------------------------------------------------

Script = Callable[..., JobResult]


@pytest.fixture
def script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Script:
    """`python scripts/<name>.py --results <tmp_path> ..`, in this process."""
    folders = ["--results", str(tmp_path), "--experiments", str(tmp_path / "experiments")]

    def run(name: str, *arguments: str) -> JobResult:
        ended = in_process_script(ROOT / "scripts", name, monkeypatch, capsys)
        return ended(*folders, *arguments)

    return run


def test_plan_reproduce_and_verify(
    planner: Planner, runnable: Runnable, script: Script, tmp_path: Path
) -> None:
    """One after the other, as a person would."""
    plan, asked = planner(), ("--suite", "one", "--", *runnable.overrides)
    before = script("plan", *asked)
    assert before.code == 0, before.err
    assert before.out.count(" missing ") == 2 and "2 to run, each once (2 run)" in before.out
    assert not (tmp_path / "runs").exists() and not (tmp_path / "suites").exists()

    first = script("reproduce", *asked)
    assert first.code == 0, first.err
    assert read_suite(tmp_path, "one", plan.suite.variant) == plan.suite
    again = script("reproduce", *asked)
    assert "2 cells of 1 suite; 0 to run, the rest is there" in again.out
    after = script("plan", *asked)
    assert after.out.count(" there ") == 2 and "0 to run, each once (none)" in after.out

    same = script("verify", *asked)
    assert same.code == 0, same.err
    assert "2 of 2 cells identical" in same.out and "what may be why" not in same.out


def test_verify_names_what_differs(
    planner: Planner, runnable: Runnable, script: Script, tmp_path: Path
) -> None:
    """The rows there are those of a longer cap under a machine of another name."""
    plan, asked = planner(), ("--suite", "one", "--", *runnable.overrides)
    longer = planner("max_new_tokens=6")
    assert not run_all(todo([longer], tmp_path), tmp_path, lambda text: None)
    for ours, theirs in zip(plan.suite.cells, longer.suite.cells, strict=True):
        shutil.copytree(theirs.path(tmp_path), ours.path(tmp_path))
        manifest = ours.path(tmp_path) / "manifest.json"
        document = json.loads(manifest.read_text())
        document["provenance"][-1]["cpu"] = "an abacus"
        manifest.write_text(json.dumps(document))
    plan.suite.write(tmp_path)
    ended = script("verify", *asked)
    assert ended.code == 1
    assert "2 of 2 cells different" in ended.out
    assert "2 another run: config.max_new_tokens differs" in ended.out
    assert "an abacus there" in ended.out


def test_a_command_that_cannot_be_understood_says_why(planner: Planner, script: Script) -> None:
    planner()
    for name in ("plan", "reproduce"):
        ended = script(name, "--suite", "two")
        assert ended.code == 2 and "there is no suite two" in ended.sentence
    ended = script("verify", "--suite", "one")
    assert ended.code == 2 and "there are no rows to compare suite one with" in ended.sentence
