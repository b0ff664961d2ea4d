"""The report: one file that needs nothing else, with every artifact, and no markup but its own."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from scripts import draw, report
from specfit.report.draw import names_of
from specfit.report.page.context import fitted, table
from specfit.report.page.outline import SECTIONS, label, sections_of
from specfit.report.page.svg import inline
from tests.scripts.drawable import made

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "scripts" / "report.py"

EVIL = "<script>alert('request')</script>"
DEVICE = "a <b>processor</b> & co"
VOID = {"meta"}
REFERENCES = {"href", "src", "srcset", "data", "action", "xlink:href", "poster", "cite"}


class Page(HTMLParser):
    """Fails on a tag that is not closed in its turn; collects what tests ask for."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self.style = ""
        self.feed(markup)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute twice in {tag}"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            self.style += data
        else:
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())

    @property
    def ids(self) -> list[str]:
        return [attrs["id"] for _, attrs in self.tags if "id" in attrs]

    def named(self, tag: str) -> list[dict[str, str]]:
        return [attrs for name, attrs in self.tags if name == tag]

    def references(self) -> Iterator[str]:
        for _, attrs in self.tags:
            yield from (attrs[key] for key in REFERENCES & attrs.keys())


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Suite table_2 alone, with names that are markup; the rest of the artifacts is missing."""
    folder = made(tmp_path_factory.mktemp("report") / "results", renamed=EVIL, device=DEVICE)
    assert report.main(["--results", str(folder)]) == 2
    return folder


@pytest.fixture(scope="module")
def page(results: Path) -> Page:
    return Page((results / "report.html").read_text(encoding="utf-8"))


def test_it_is_well_formed_with_distinct_ids_and_links_that_lead_somewhere(page: Page) -> None:
    twice = [name for name, count in Counter(page.ids).items() if count > 1]
    assert not twice
    targets = [one.removeprefix("#") for one in page.references() if one.startswith("#")]
    assert targets and set(targets) <= set(page.ids)
    named = {name for _, a in page.tags for name in a.get("aria-labelledby", "").split()}
    assert named <= set(page.ids)


def test_it_needs_no_other_file_and_no_network(page: Page, results: Path) -> None:
    assert all(one.startswith("#") for one in page.references())
    assert not {"script", "link", "img", "iframe", "object", "embed", "base"} & {
        tag for tag, _ in page.tags
    }
    for style in [page.style, *(attrs.get("style", "") for _, attrs in page.tags)]:
        assert "@import" not in style and "@font-face" not in style
        assert all(at.startswith("#") for at in re.findall(r"url\(['\"]?([^)]*)\)", style))
    markup = (results / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|file://", markup)


def test_every_artifact_has_its_place_its_command_and_its_runs(page: Page, results: Path) -> None:
    names = names_of(results=results)
    assert set(names) <= set(page.ids)
    index = json.loads((results / "artifacts.json").read_text())
    assert set(index) == set(names)
    for name, entry in index.items():
        if "missing" in entry:
            assert f"Not drawn. {entry['missing']}." in page.words
            continue
        assert entry["title"] in page.words and entry["command"] in page.words
        assert all(run in page.words for run in entry["runs"])
        assert all(file in page.words for file in entry["files"]), name
        for sheet in entry["sheets"]:
            assert all(
                cell in page.words for row in sheet["rows"] for cell in row if "[" not in cell
            )
    assert "first: make reproduce SUITE=table_3" in page.words


def test_what_the_rows_say_is_text_and_never_markup(page: Page) -> None:
    assert DEVICE in page.words
    assert f"first other {EVIL}, token 0" in page.words, "the request is named where ids part"
    assert "script" not in {tag for tag, _ in page.tags} and not page.named("b")


def test_the_papers_values_stand_beside_ours_and_verdicts_are_counted(
    page: Page, results: Path
) -> None:
    entry = json.loads((results / "artifacts.json").read_text())["table_2"]
    (beside,) = [sheet for sheet in entry["sheets"] if "verdict" in sheet["columns"]]
    given = Counter(row[-1] for row in beside["rows"])
    marked = Counter(attrs["class"] for attrs in page.named("span") if "verdict" in attrs["class"])
    assert marked == {f"verdict {word.replace(' ', '-')}": n for word, n in given.items()}
    # SpecFit: 2 tokens in 6 ms, EAGLE-3 + cache: 3 in 12; EAGLE-3: 3 in 30 ms, AR: 1 in 8.
    assert "SpecFit is 1.33 times as fast as EAGLE-3 + cache" in page.words
    assert "SpecFit is 1.67 times as fast as AR + cache" in page.words
    assert "no number of the paper is reproduced or refuted on this page" in page.words


def test_it_can_be_read_aloud(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(below - above <= 1 for above, below in itertools.pairwise(levels))
    assert page.named("html") == [{"lang": "en"}]
    assert len(page.named("svg")) == 2, "figure 2 alone has its rows: wide, and for a phone"
    assert all(one["role"] == "img" and one["aria-label"] for one in page.named("svg"))
    assert page.named("th") and all(
        one["scope"] in ("row", "rowgroup", "col") for one in page.named("th")
    )
    assert page.named("nav") == [{"aria-label": "Contents"}]


def test_the_same_rows_give_the_same_bytes(results: Path) -> None:
    before = (results / "report.html").read_bytes()
    options = ["--results", str(results), "--as-drawn"]
    command = [sys.executable, str(REPORT), *options]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": "7"}
    )
    assert done.returncode == 2 and "the report lacks" in done.stderr
    assert (results / "report.html").read_bytes() == before


def test_what_was_never_drawn_is_said_with_its_command(tmp_path: Path) -> None:
    results = made(tmp_path)
    assert report.main(["--results", str(results), "--as-drawn"]) == 2
    page = Page((results / "report.html").read_text(encoding="utf-8"))
    assert "first: make figures" in page.words
    assert set(names_of(results=results)) <= set(page.ids)


def test_a_preview_lies_apart_and_its_commands_say_so(tmp_path: Path) -> None:
    results = made(tmp_path, "preview")
    options = ["--results", str(results), "--size", "preview"]
    assert draw.main([*options, "--only", "table_2"]) == 0
    assert report.main([*options, "--as-drawn"]) == 2
    written = results / "variants" / "preview" / "report.html"
    words = Page(written.read_text(encoding="utf-8")).words
    assert "python scripts/draw.py --only table_2 --size preview" in words
    assert "make reproduce SUITE=table_2 SIZE=preview" in words
    assert "(our stand-in for CNN/DailyMail) (preview)" in words
    assert not (results / "report.html").exists()


def test_a_clone_with_reference_rows_alone_gets_the_page_and_it_says_so(tmp_path: Path) -> None:
    results = tmp_path / "results"
    made(results / "reference")
    assert draw.main(["--results", str(results), "--only", "table_2"]) == 0
    assert report.main(["--results", str(results), "--as-drawn"]) == 2
    page = Page((results / "report.html").read_text(encoding="utf-8"))
    assert {one.removeprefix("#") for one in page.references()} <= set(page.ids)
    assert "table_2: 5 cells, reference rows" in page.words and "reference rows." in page.words


# -- parts -----------------------------------------------------------------------------------------


def test_every_script_has_a_section_and_a_new_one_gets_the_last() -> None:
    names = names_of()
    assert [s.name for s in sections_of(names)] == [s.name for s in SECTIONS]
    with_new = sections_of([*names, "table_new"])
    assert with_new[-1].name == "more" and with_new[-1].names == ("table_new",)
    assert sections_of([]) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("table_2", "Table 2"),
        ("figure_section_4_6", "Figure: section 4.6"),
        ("table_figure_4", "Table: figure 4"),
    ],
)
def test_a_script_is_called_what_it_makes(name: str, words: str) -> None:
    assert label(name) == words


SHEET = {
    "title": "A & B",
    "columns": ["workload", "system", "x"],
    "numeric": [False, False, True],
    "rows": [["news", "a", "1.2 [1.1, 1.3]"], ["news", "<b>", "-"], ["gsm8k", "a", "2"]],
    "note": "",
}


def test_a_groups_name_is_one_tall_cell_and_intervals_stand_apart_from_their_values() -> None:
    found = table(SHEET, "t")
    lines = found["lines"]
    assert [len(line["cells"]) for line in lines] == [3, 2, 3]
    assert [line["starts"] for line in lines] == [True, False, True], "another group begins"
    assert lines[0]["cells"][0]["span"] == 2 and lines[0]["cells"][1]["head"]
    assert (lines[0]["cells"][2]["text"], lines[0]["cells"][2]["bounds"]) == ("1.2", "[1.1, 1.3]")
    assert not found["look"]
    alone = table(SHEET | {"rows": SHEET["rows"][1:]}, "t", above=["A & B"])
    assert alone["look"] == "pinned" and alone["hide_title"]
    assert [cell["head"] for cell in alone["lines"][0]["cells"]] == [True, False, False]


def test_columns_with_prefill_go_to_a_second_table_where_there_are_many() -> None:
    columns = ["system", *(f"q{i}" for i in range(6)), "tokens/s with prefill"]
    wide = SHEET | {
        "columns": columns,
        "numeric": [False, *[True] * 7],
        "rows": [[str(i) for i in range(8)]],
    }
    first, second = fitted(wide, "t", ())
    assert [word for word, _ in first["columns"]] == columns[:-1] and not first["folded"]
    assert [word for word, _ in second["columns"]] == ["system", columns[-1]] and second["folded"]
    assert len(fitted(SHEET, "t", ())) == 1


SVG = """<?xml version="1.0"?>
<!DOCTYPE svg PUBLIC "x" "http://www.w3.org/svg11.dtd">
<svg xmlns:xlink="http://www.w3.org/1999/xlink" width="9pt" viewBox="0 0 9 4.5" version="1.1">
<metadata><a>who</a></metadata><defs><style type="text/css">*{x: y}</style>
<clipPath id="p1"><rect/></clipPath></defs>
<!-- a label --><g id="axes_1" clip-path="url(#p1)"><use xlink:href="#m1"/></g></svg>
"""


def test_a_figures_ids_are_its_own_on_the_page() -> None:
    page = Page(inline(SVG, "figure_9", 'says "a"'))
    assert page.ids == ["figure_9-p1", "figure_9-axes_1"]
    assert page.named("g")[0]["clip-path"] == "url(#figure_9-p1)"
    assert page.named("use") == [{"href": "#figure_9-m1"}]
    drawn = page.named("svg")[0]
    assert drawn == {"viewbox": "0 0 9 4.5", "role": "img", "aria-label": 'says "a"'}
    assert not page.words and not page.style and not page.named("metadata")
