"""Minutes and bytes of a planned cell, from finished runs added up by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from specfit.storage.suite import REFERENCE, Cell
from specfit.workflows.suites.estimating import (
    Finished,
    closest,
    estimate,
    finished_below,
    folder_bytes,
)
from specfit.workflows.suites.files import Group
from specfit.workflows.suites.planning import Planned, Work
from tests.fakes.rows import part, store_run


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
