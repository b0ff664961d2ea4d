"""docs/extend.md: its files, written out as a package elsewhere, run through the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from specfit.base.plugins import named
from specfit.base.types import SpecfitError
from specfit.storage.rows import RunRows, load_run
from tests.fakes.tiny_model import Command, JobResult, Runnable

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "extend.md"
BLOCK = re.compile(r"```(?:python|yaml)\n# (thrifty/\S+)\n(.*?)```", re.DOTALL)
SEARCHED = "hydra.searchpath=[pkg://thrifty.conf]"


@pytest.fixture
def thrifty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The document's package, outside the repository and importable."""
    home = tmp_path / "elsewhere"
    files = dict(BLOCK.findall(DOCUMENT.read_text(encoding="utf-8")))
    for name in ("thrifty/__init__.py", "thrifty/conf/__init__.py"):
        files[name] = ""
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(home)
    return home


class Runs:
    def __init__(self, command: Command, runnable: Runnable, results: Path) -> None:
        self._command, self._results = command, results
        self._small = [*runnable.overrides, f"results_dir={results}", "limit=2", "cache_slots=4"]
        self._small.append("max_new_tokens=6")

    def end(self, *overrides: str) -> JobResult:
        return self._command(*self._small, *overrides)

    def rows(self, *overrides: str) -> RunRows:
        before = set(self._results.glob("runs/*/manifest.json"))
        ended = self.end(*overrides)
        assert ended.code == 0, ended.err
        (manifest,) = set(self._results.glob("runs/*/manifest.json")) - before
        return load_run(manifest.parent)


@pytest.fixture
def runs(command: Command, runnable: Runnable, tmp_path: Path) -> Runs:
    return Runs(command, runnable, tmp_path / "results")


def test_a_selector_from_outside(runs: Runs, thrifty: Path) -> None:
    ours = runs.rows("selector=ar_cache")
    theirs = runs.rows(SEARCHED, "selector=thrifty")
    assert theirs.info.selector == "thrifty.rule:THRIFTY"
    assert theirs.requests["output_ids"].map(list).tolist() == (
        ours.requests["output_ids"].map(list).tolist()
    )
    assert theirs.cycles["verified_nodes"].max() <= 4
    again = runs.end("selector.name=thrifty.rule:THRIFTY", "selector.k=4")
    assert again.code == 0 and theirs.info.run_id in again.out, "the YAML only gives values"


def test_a_route_source_from_outside(runs: Runs, thrifty: Path) -> None:
    """ecospec with nodes that need nothing new is the order of probability."""
    theirs = runs.rows(SEARCHED, "selector=ecospec", "routes=like_the_root")
    plain = runs.rows("selector=eagle3_cache")
    assert theirs.info.routes == "thrifty.routes:like_the_root"
    assert theirs.cycles["route_mismatches"].sum() > 0
    for column in ("verified_nodes", "accepted_tokens", "demand_experts"):
        assert theirs.cycles[column].tolist() == plain.cycles[column].tolist()


def test_a_cost_from_outside(runs: Runs, thrifty: Path, calibration: Path) -> None:
    fitted = ["selector=specfit", "calibration.slots=4", f"calibration.path={calibration}"]
    union, double = runs.rows(*fitted), runs.rows(*fitted, "cost=thrifty.cost:double")
    assert union.info.run_id != double.info.run_id
    assert double.cycles["verified_nodes"].sum() <= union.cycles["verified_nodes"].sum()


def test_a_policy_from_outside(runs: Runs, thrifty: Path) -> None:
    """Other experts go, and ids stay the target's."""
    plain = runs.rows("selector=ar_cache", "cache_slots=6", "max_new_tokens=24")
    theirs = runs.rows(
        "selector=ar_cache",
        "cache_slots=6",
        "max_new_tokens=24",
        "policy=thrifty.policy:first_in_first_out",
    )
    assert plain.info.run_id != theirs.info.run_id
    assert [*map(list, theirs.requests["output_ids"])] == [*map(list, plain.requests["output_ids"])]
    copies = [run.cycles["transferred_experts"].sum() for run in (plain, theirs)]
    assert copies[0] != copies[1] and theirs.cycles["evicted_experts"].sum() > 0


WRONG = {
    "policy=thrifty.policy:nothing": "thrifty.policy has no nothing",
    "selector.name=nowhere.at:ALL": "nowhere.at cannot be imported",
    "selector.name=thrifty.rule:MISSING": "thrifty.rule has no MISSING",
    "selector.name=thrifty.rule:Thrifty": "must be a specfit.selection.registry.SelectorSpec",
    "selector.name=thrifty": "or package.module:name for one of your own",
    "routes.name=thrifty.conf:__doc__": "must be a function (spec, runtime, drafter)",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_name_is_one_sentence(runs: Runs, thrifty: Path, wrong: str) -> None:
    chosen = ["selector=ecospec"] if wrong.startswith("routes") else []
    ended = runs.end(*chosen, wrong)
    assert ended.code == 2 and WRONG[wrong] in ended.sentence


def test_ours_come_first_and_only_the_named_module_is_imported() -> None:
    assert named("key", "a", {"a": 1}, callable, "a function") == 1
    with pytest.raises(SpecfitError, match=r"key is 'os:path:x'; use one of a, or"):
        named("key", "os:path:x", {"a": 1}, callable, "a function")
