"""experiments/*.yaml as people write them: what is understood, what is refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfit.base.types import SpecfitError
from specfit.workflows.studies import MEASURED, OF_A_REPLAY, study_named
from specfit.workflows.suites.files import (
    SIZES,
    SuiteFile,
    choices,
    joined,
    read_suite_file,
    suite_names,
)

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "experiments"

WHOLE = """
common: gpu=paper_main cache_slots=48
preview: limit=8
smoke: limit=1
repeats: 2
groups:
  - kind: run
    common: seed=1
    axes:
      - {news: dataset=embedded_news}
      - {ar: selector=ar, specfit: selector=specfit cache_slots=12}
  - kind: bench
    study: selection_time
    writes: selection
    smoke: --scale 0.01
    axes: [{bench: ""}, {selection: ""}]
"""


def read(folder: Path, text: str) -> SuiteFile:
    (folder / "some.yaml").write_text(text)
    return read_suite_file("some", folder)


def test_a_cell_is_one_choice_per_axis(tmp_path: Path) -> None:
    suite = read(tmp_path, WHOLE)
    runs, bench = suite.groups
    shared = ["gpu=paper_main", "cache_slots=48", "seed=1", "dataset=embedded_news"]
    cached = ["gpu=paper_main", "cache_slots=12", "seed=1", "dataset=embedded_news"]
    assert dict(choices(runs)) == {
        "news/ar": [*shared, "selector=ar"],
        "news/specfit": [*cached, "selector=specfit"],
    }
    assert (runs.sized("full"), runs.sized("preview"), runs.sized("smoke")) == (
        "",
        "limit=8",
        "limit=1",
    )
    assert (bench.common, bench.preview, bench.smoke) == ("", "", "--scale 0.01")
    assert (suite.repeats, suite.keeps) == (2, "sums")


def test_of_one_key_the_last_value_counts() -> None:
    assert joined(["a=1", "b=2"], ["a=3"], ["+c=4"], ["c=5"]) == ["a=3", "b=2", "c=5"]


def changed(old: str, new: str) -> str:
    assert WHOLE.count(old) >= 1
    return WHOLE.replace(old, new, 1)


REFUSED = {
    "no groups": ("groups: []", "groups is a list of at least one group"),
    "nothing": ("", "a suite lacks groups"),
    "a list": ("- a", "a suite is a mapping"),
    "an unknown key": (changed("repeats", "repeat"), "unknown key repeat in a suite; use common"),
    "an unknown group key": (changed("    common", "    commn"), "unknown key commn in group 1"),
    "an unknown kind": (changed("kind: run", "kind: walk"), "is of kind 'walk'; use one of run"),
    "no kind": (changed("  - kind: run\n    common", "  - common"), "group 1 lacks kind"),
    "repeats of none": (changed("repeats: 2", "repeats: 0"), "repeats is 0; it is a number"),
    "kept otherwise": (changed("repeats: 2", "keeps: all"), "keeps is 'all'; it is cycles or sums"),
    "axes of nothing": (changed('[{bench: ""}, {selection: ""}]', "[{}]"), "axes of group 2"),
    "a word": (changed("selector=ar,", "ar,"), "cell news/ar has 'ar', which is not key=value"),
    "no smoke": (changed("smoke: limit=1", "smoke:"), "group 1 has no smoke size"),
    "a bench's no smoke": (changed("    smoke: --scale 0.01\n", ""), "group 2 has no smoke size"),
    "a bench of nothing": (changed("    writes: selection\n", ""), "needs a study and what it"),
    "a run's study": (changed("    common: seed=1", "    study: rules"), "are of a bench"),
    "an odd reading": (
        changed("    writes: selection", "    writes: x\n    reads: files"),
        "reads 'files'; it is run or replay",
    ),
    "a label twice": (
        changed(
            "    smoke: --scale 0.01\n    axes: [{bench: ", "    smoke: a\n    axes: [{news: "
        ).replace("{selection: ", "{ar: "),
        "two cells are called news/ar",
    ),
    "a sandwich of one": (
        changed("repeats: 2", "sandwich: ar"),
        "sandwich is 'ar'; it is two names",
    ),
    "a sandwich of no cell": (
        changed("repeats: 2", "sandwich: ar evict"),
        "of one group's last axis",
    ),
    "no YAML": ("groups: [", "some.yaml is no YAML"),
    "a name twice": (changed("ar: selector=ar,", "ar: selector=ar, ar: seed=2,"), "is no YAML"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_bad_file_gets_one_sentence_that_names_it(tmp_path: Path, what: str) -> None:
    text, sentence = REFUSED[what]
    with pytest.raises(SpecfitError) as refused:
        read(tmp_path, text)
    assert sentence in str(refused.value) and "some.yaml" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_unknown_suite_names_the_known_ones(tmp_path: Path) -> None:
    read(tmp_path, WHOLE)
    with pytest.raises(SpecfitError, match=r"no suite table_9 in .*; there is some"):
        read_suite_file("table_9", tmp_path)


# -- the shipped ones ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", suite_names(SHIPPED))
def test_a_shipped_suite_says_how_it_is_run_and_begins_labels_with_a_workload(name: str) -> None:
    lines = (SHIPPED / f"{name}.yaml").read_text().splitlines()
    assert lines[0].startswith("# ") and lines[1] == f"#   make reproduce SUITE={name}"
    for group in read_suite_file(name, SHIPPED).groups:
        assert all(group.sized(size) is not None for size in SIZES) and group.smoke
        for label, line in choices(group):
            workload = label.split("/")[0]
            said = [item for item in line if item.startswith("dataset=")]
            assert said == ([f"dataset=embedded_{workload}"] if group.is_configured else [])


def test_every_study_that_a_suite_names_is_there() -> None:
    groups = [g for name in suite_names(SHIPPED) for g in read_suite_file(name, SHIPPED).groups]
    named = {group.study for group in groups if group.study}
    assert {"rules", "selection_time"} <= named <= {*OF_A_REPLAY, *MEASURED}
    for name in named:
        assert callable(study_named(name))
