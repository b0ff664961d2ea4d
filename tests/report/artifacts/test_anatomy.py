"""One cycle taken apart; constants changed one at a time."""

from __future__ import annotations

import pytest

from specfit.base.types import SpecfitError
from specfit.report.artifacts.anatomy import anatomy, heights
from specfit.report.artifacts.constants import constants_sheet
from specfit.workflows.studies.anatomy import named_cycle
from tests.report.artifacts.members import decoding, member, texts

ONE = 1 << 20  # a probability of 1, and a token of reward


def test_constants_change_one_at_a_time() -> None:
    gpu = {"name": "paper_main", "billed": "x", "link_gbps": 25.0, "node_ms": 0.6}
    settings = ({}, {"node_ms": 1.2}, {"node_ms": 0.3})
    speeds = {"ar": 8, "ar_cache": 5, "eagle3": 30, "eagle3_cache": 12, "specfit": 6}
    members = [
        member(
            name, 48, decoding(2, ms + 3 * i), {"gpu": gpu | changes}, run_id=f"{name[:8]}{i}"
        )
        for i, changes in enumerate(settings)
        for name, ms in speeds.items()
    ]  # fmt: skip
    sheet = constants_sheet(members, "modelled")
    assert texts(sheet, "profile") == ["as it is", "node_ms 0.6 -> 1.2", "node_ms 0.6 -> 0.3"]
    assert texts(sheet, "over AR") == ["1.33x", f"{11 / 9:.2f}x", f"{14 / 12:.2f}x"]
    assert texts(sheet, "over EAGLE-3 + cache")[0] == "+100.0 %"


def test_a_tree_is_drawn_without_crossings() -> None:
    """0 and 1 below the root, 2 and 3 below 0: leaves 2, 3, 1 from the top."""
    ys, root = heights([-1, -1, 0, 0])
    assert ys == [0.5, 2.0, 0.0, 1.0] and root == 1.25
    assert heights([]) == ([], 0.0)


def test_the_anatomy_adds_up() -> None:
    node = {"parent": -1, "depth": 1, "path_prob": 0.5, "new_experts": 4, "selected": True}
    document = {
        "row": {
            "verified_nodes": 1,
            "transfer_wait_ns": 2_000_000,
            "verify_ns": 5_000_000,
            "draft_ns": 1_000_000,
            "route_ns": 0,
            "select_ns": 0,
            "commit_ns": 0,
            "predicted_reward": 3 * ONE // 2,
            "predicted_ns": 5_000_000,
            "hit_experts": 9,
            "transferred_experts": 3,
            "committed_tokens": 2,
        },
        "cost": {"intercepts_ns": [1e6, 2e6], "expert_ns": 250_000.0},
        "nodes": [node | {"accepted": True}],
        "texts": None,
        "tokens": [7],
        "legal": {"reward": [1.0, 1.5], "time_ns": [3_000_000, 5_000_000]},
        "eagle3": {"reward": 1.5, "time_ns": 5_000_000},
        "union": 12,
        "root_demand": 8,
    }
    a = anatomy(document)
    assert a.realised_ms == 6.0 and a.predicted_ms == 5.0
    assert a.parts_ms == {"b": 2.0, "union": 3.0} and a.rate == 0.3
    assert a.nodes[0].text == "7", "without a tokenizer a token is its id"


def test_a_cycle_is_asked_for_by_request_and_number() -> None:
    rows = member("specfit", 48, decoding(2, 6)).rows
    row = named_cycle(rows, "b:2")
    assert (row["request_id"], row["cycle"]) == ("b", 2)
    for wrong in ("b", "c:1", "b:0", "b:9"):  # cycle 0 is prefill: nothing is drafted there
        with pytest.raises(SpecfitError, match=r"as in a:1$"):
            named_cycle(rows, wrong)
