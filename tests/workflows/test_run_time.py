"""Run times: an uncached AR token is hand-counted, prompts are read, finished runs are added up."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from specfit.base.types import Request, RequestError
from specfit.decoding.memory_fit import workload_context
from specfit.decoding.spec import profile_of
from specfit.hardware.profile import Billing, Profile
from specfit.hardware.reference_models import BILLED_MODELS
from specfit.models.target import fetch
from specfit.report.clock_check import FOLDER
from specfit.storage.suite import REFERENCE, Cell
from specfit.workflows.hydra_cli import config_of
from specfit.workflows.run_time import (
    SYSTEMS,
    Experts,
    Finished,
    Requests,
    RunTime,
    closest,
    estimate,
    expected,
    expected_recording,
    finished_below,
    folder_bytes,
    probed_profile,
    requests_of,
    run_time,
    system_like,
    unfetched,
)
from specfit.workflows.suites.files import Group
from specfit.workflows.suites.planning import Planned, Work
from tests.fakes.rows import part, store_run

NEEDS = BILLED_MODELS["qwen3-30b-a3b"]
MODEL = Experts(NEEDS.layers, NEEDS.experts, 8, NEEDS.expert_bytes)
MAIN = Profile("main", 25.0, 70.0)
NAMED = {system.name: system for system in SYSTEMS}


def time_of(name: str, slots: int = 48, profile: Profile = MAIN, requests: int = 80) -> RunTime:
    return run_time(NAMED[name], MODEL, profile, slots, Requests(requests, 0, 256))


def test_an_uncached_ar_token_is_70_and_145_ms() -> None:
    token_ms = 70.0 + 48 * 8 * 9_437_184 / 25e6
    prefill_ms = 70.0 + 48 * 128 * 9_437_184 / 25e6
    expected = 80 * (256 * token_ms + prefill_ms) / 1e3
    assert time_of("ar").timed_s == pytest.approx(expected)
    assert token_ms == pytest.approx(214.9, abs=0.1)


def test_a_cache_a_faster_link_and_fewer_requests_help() -> None:
    assert time_of("ar_cache").timed_s < time_of("ar").timed_s
    assert time_of("ar_cache", slots=0).timed_s == time_of("ar").timed_s
    assert time_of("ar", profile=Profile("fast", 55.0, 70.0)).timed_s < time_of("ar").timed_s
    assert time_of("specfit", requests=40).timed_s == pytest.approx(time_of("specfit").timed_s / 2)


def test_only_the_atlas_is_off_the_clock() -> None:
    assert time_of("specfit").elapsed_s > time_of("specfit").timed_s
    assert all(time_of(n).elapsed_s == time_of(n).timed_s for n in NAMED if n != "specfit")


def test_with_every_expert_resident_nothing_is_copied() -> None:
    slow = Profile("slow", 0.001, 70.0)
    assert time_of("eagle3_cache", slots=128, profile=slow) == time_of("eagle3_cache", slots=128)


def test_a_serial_machine_adds_copies_and_experts() -> None:
    """One uncached token of 2 layers and 2 experts: (1 + 0.5 ms) x 4 beside 3 ms fixed; a prompt of
    4 experts a layer: 3 + 10 x 0.1 + 8 x 1.5 ms."""
    small = Experts(layers=2, per_layer=4, top_k=2, expert_bytes=1_000_000)
    slow = {"link_gbps": 2.0, "fixed_ms": 3.0, "prefill_token_ms": 0.1, "expert_us": 1000.0}
    serial, overlapping = (
        Profile("p", overlap=overlap, **slow)  # type: ignore[arg-type]
        for overlap in (False, True)
    )
    work = Requests(1, 10, 5)
    token_ms, prompt_ms = 3 + 4 * 1.5, 3 + 1 + 8 * 1.5
    found = run_time(NAMED["ar"], small, serial, 0, work)
    assert found.timed_s == pytest.approx((5 * token_ms + prompt_ms) / 1e3)
    found = run_time(NAMED["ar"], small, overlapping, 0, work)
    assert found.timed_s == pytest.approx((5 * (3 + 4) + 3 + 1 + 8) / 1e3), "copies are hidden"
    alone = replace(overlapping, miss_us=500.0)  # a missed expert takes 1.5 ms
    found = run_time(NAMED["ar"], small, alone, 0, work)
    assert found.timed_s == pytest.approx((5 * (3 + 4 * 1.5) + 3 + 1 + 8 * 1.5) / 1e3)


def test_other_selectors_are_estimated_as_what_they_resemble() -> None:
    assert system_like("specfit", True, True) is NAMED["specfit"]
    rival = system_like("rival", drafts=True, reads_routes=True)
    assert (rival.name, rival.rows) == ("rival", NAMED["specfit"].rows)
    assert system_like("other", drafts=True, reads_routes=False).levels == 5
    assert system_like("plain", drafts=False, reads_routes=False).rows == 1


# -- of the run that is about to start ----

MODELLED = Profile("paper", link_gbps=1.0, fixed_ms=100.0, prefill_token_ms=1.0)


@dataclass
class Prompts:
    lengths: list[int]
    ids: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.ids = [str(i) for i in range(len(self.lengths))]

    def request(self, index: int) -> Request:
        if self.lengths[index] == 0:
            raise RequestError("too long")
        return Request(self.ids[index], np.arange(self.lengths[index]), 10, frozenset({0}))


def spec(results: Path, clock: str = "modelled", profile: Profile = MODELLED) -> Any:
    """Uncached decoding of 10 tokens: 2 own layers billed as 4, 1 of 4 experts a row."""
    return SimpleNamespace(
        config=SimpleNamespace(
            results_dir=str(results), new_tokens=10, selector=SimpleNamespace(name="ar")
        ),
        kind=SimpleNamespace(drafts=False, reads_routes=False),
        geometry=SimpleNamespace(experts=4, top_k=1),
        billing=Billing("big", 4, 5_000_000, 2, 1_000_000),
        workload=Prompts([6, 0, 4, 2]),
        profile=profile,
        clock=clock,
        slots=0,
        device_name="Some CPU",
    )


def leave_probe(results: Path, device: str = "Some CPU") -> None:
    values = {"name": "probe-x", "gpu_names": [device], "link_gbps": 0.5, "fixed_ms": 50.0}
    values |= {"overlap": False, "expert_us": 1000.0, "prefill_token_ms": 0.0}
    (results / FOLDER).mkdir()
    (results / FOLDER / "a.json").write_text("not json")
    (results / FOLDER / "b.json").write_text(json.dumps({"profile": values}))


def test_a_modelled_run_says_its_timed_seconds(tmp_path: Path) -> None:
    """A token takes 100 + 4 x 5 ms; a prompt of 4 tokens 100 + 4 + 4 x 4 x 5; four requests."""
    said = expected(spec(tmp_path))
    seconds = 4 * (10 * 120 + 184) / 1000
    assert said.startswith("expected for 4 requests: a wait that is shown after the first; ")
    assert f"; {seconds:.0f} s on the modelled clock (profile paper); estimated" in said
    assert expected(spec(tmp_path), done=3).startswith("expected for 1 request: ")


def test_elapsed_is_by_this_machines_probe(tmp_path: Path) -> None:
    """As it is: 50 + 2 x (2 + 1) ms a token, 50 + 8 x 3 a prompt."""
    leave_probe(tmp_path)
    seconds = 4 * (10 * 56 + 74) / 1000
    assert f"{seconds:.0f} s to wait (by profile probe-x); " in expected(spec(tmp_path))
    on_the_wall = expected(spec(tmp_path, "wall", Profile("local", None, None)))
    assert f"{seconds:.0f} s to wait (by profile probe-x); estimated" in on_the_wall
    decoding = expected_recording(spec(tmp_path), 4)
    assert f"expected for 4 requests: {seconds:.0f} s to decode them" in decoding


def test_only_what_is_left_is_expected(tmp_path: Path) -> None:
    assert requests_of(spec(tmp_path), 0).prompt_tokens == 4
    left = requests_of(spec(tmp_path), 2)
    assert (left.count, left.prompt_tokens) == (2, 3)
    assert requests_of(spec(tmp_path), 4).prompt_tokens == 0


@pytest.mark.parametrize("device", [None, "Another CPU"])
def test_without_numbers_it_is_unknown(tmp_path: Path, device: str | None) -> None:
    if device is not None:
        leave_probe(tmp_path, device)
    local = spec(tmp_path, "wall", Profile("local", None, None))
    assert expected(local).startswith("expected: unknown, profile local has no numbers")
    assert expected_recording(local, 3).startswith("expected: unknown")
    assert probed_profile(tmp_path, "Some CPU") is None


def test_a_model_that_is_not_fetched_is_planned_by_arithmetic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """80 requests of 256 tokens are given; the prompt is at the workload's own limit."""
    monkeypatch.setattr(fetch, "in_cache", lambda repository: None)
    words = ["model=qwen3-30b-a3b", "drafter=redhat-eagle3", "selector=ar", "gpu=paper_main"]
    config = config_of([*words, "limit=80", "max_new_tokens=256"])
    found = unfetched(config)
    assert found is not None
    prompt = workload_context(config, 10**9) - 256
    assert found == run_time(
        NAMED["ar"], MODEL, profile_of(config.gpu), 0, Requests(80, prompt, 256)
    )
    assert unfetched(config_of(["selector=ar"])) is None, "the packaged model is here"
    assert unfetched(config_of([*words[:3], "gpu=local"])) is None, "no numbers for this machine"


# -- from finished runs ----


def work(dataset: str = "news", selector: str = "ar", slots: int = 0, model: str = "m") -> Work:
    named = {
        key: SimpleNamespace(name=v)
        for key, v in {"model": model, "dataset": dataset, "selector": selector}.items()
    }
    config: Any = SimpleNamespace(**named, new_tokens=64)
    return Work("a" * 12, config, slots, 20)


def finished(seconds: float, **changes: Any) -> Finished:
    said: dict[str, Any] = {
        "kind": "run",
        "model": "m",
        "dataset": "news",
        "selector": "ar",
        "cache_slots": 0,
        "max_new_tokens": 64,
        "seconds": seconds,
        "size_bytes": 1000.0,
    }
    return Finished(**(said | changes))


def planned(one: Work | None, kind: str = "run") -> Planned:
    return Planned(Cell("news/ar", kind, "", "a" * 12), Group(kind, ({"news": ""},), "x"), (), one)


def test_the_mean_of_the_runs_that_are_most_like_it_times_the_requests() -> None:
    known = [finished(3), finished(6), finished(100, selector="specfit")]
    guess = estimate(planned(work()), known)
    assert guess is not None
    assert (guess.minutes, guess.size_bytes) == (20 * 4.5 / 60, 20 * 1000.0)


@pytest.mark.parametrize(
    ("wanted", "seconds"),
    [
        (work(), 1),
        (work(slots=48), 1),  # the selector says more than the slots
        (work(selector="specfit", slots=48), 3),
        (work(selector="specfit", slots=12), 2),
        (work(dataset="other"), 1),  # nothing of this workload: the same selector and slots
        (work(selector="rival"), 1),  # nothing of this selector: the same workload and slots
    ],
)
def test_workload_then_selector_then_slots(wanted: Work, seconds: float) -> None:
    known = [
        finished(1),
        finished(2, selector="specfit", cache_slots=12),
        finished(3, selector="specfit", cache_slots=48),
        finished(9, dataset="third", selector="third", cache_slots=7),
    ]
    assert [one.seconds for one in closest(wanted, known)] == [seconds]


def test_another_model_limit_or_kind_says_nothing() -> None:
    assert estimate(planned(work(model="other")), [finished(1)]) is None
    assert estimate(planned(work()), [finished(1, max_new_tokens=9)]) is None
    assert estimate(planned(work()), [finished(1, kind="replay")]) is None
    assert estimate(planned(None, "bench"), [finished(1)]) is None


def test_what_people_waited_is_read_from_live_and_reference_rows(tmp_path: Any) -> None:
    """A request of three cycles of 4 ms waited twice that."""
    folder = store_run(tmp_path / "runs", [part("q1"), part("q2")], "a" * 12)
    store_run(tmp_path / REFERENCE / "replays", [part("q1")], "b" * 12)
    live, kept = finished_below(tmp_path)
    assert (live.kind, kept.kind) == ("run", "replay")
    assert live.seconds == kept.seconds == pytest.approx(0.024)
    assert live.size_bytes == folder_bytes(folder) / 2
