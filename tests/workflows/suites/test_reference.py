"""The committed suites: every override line still composes to the run id beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfit.report.sandwich import split_try
from specfit.storage.suite import REFERENCE, Suite, find_suite, read_suite
from specfit.workflows.suites.planning import work_of

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "results"
KEPT = sorted(path.stem for path in (RESULTS / REFERENCE / "suites").glob("*.json"))
FEW = 6


def kept(name: str) -> Suite:
    suite = read_suite(RESULTS / REFERENCE, name)
    assert suite is not None
    return suite


def check_ids(suite: Suite, most: int | None = None) -> None:
    for cell in [cell for cell in suite.cells if cell.kind != "bench"][:most]:
        found = work_of(cell.overrides.split(), RESULTS, is_replay=False)
        assert found.run_id == cell.id, f"{suite.artifact}: {cell.label} is another run now"


@pytest.mark.skipif(not KEPT, reason="results/reference holds no suite yet")
def test_the_first_ids_of_a_committed_suite_are_true() -> None:
    check_ids(kept(KEPT[-1]), FEW)


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_every_id_of_a_committed_suite_is_true(name: str) -> None:
    check_ids(kept(name))


@pytest.mark.parametrize("name", KEPT)
def test_every_row_of_a_committed_suite_is_there(name: str) -> None:
    assert not kept(name).missing(RESULTS / REFERENCE)
    find_suite(name, RESULTS)


@pytest.mark.parametrize("name", KEPT)
def test_a_committed_suite_is_the_one_in_experiments(name: str) -> None:
    from specfit.workflows.suites.files import choices, read_suite_file

    file = read_suite_file(name, ROOT / "experiments")
    lines = {label: " ".join(line) for group in file.groups for label, line in choices(group)}
    held = {cell.label: cell.overrides for cell in kept(name).cells}
    if file.sandwich is not None:  # measured block by block: parts, and tries of their own
        held = {label: line for label, line in held.items() if split_try(label)[1] == 0}
        lines = {label: line for label, line in lines.items() if label in held}
    assert lines == held
