"""The report in a real headless browser: no error, no overflow, no dead link, at two widths."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scripts import report
from tests.scripts.drawable import made

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next((path for name in BROWSERS if (path := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason=f"needs one of {', '.join(BROWSERS)}")

PROBE = """
const told = [];
window.onerror = (message) => { told.push(String(message)); };
const frame = document.getElementById("page");
frame.onload = () => {
  const page = frame.contentDocument, root = page.documentElement;
  const links = [...page.querySelectorAll("a[href]")].map((a) => a.getAttribute("href"));
  const inBox = (e) => e.parentElement.closest(".box, .sheet, pre");
  const wide = [...page.body.querySelectorAll("*")].filter(
    (e) => !inBox(e) && e.getBoundingClientRect().right > root.clientWidth + 1);
  const shown = (q) => { const e = page.querySelector(q); return !!e && e.offsetHeight > 0; };
  const pixel = frame.contentWindow.getComputedStyle(page.body).backgroundColor;
  document.title = JSON.stringify({
    errors: told,
    scroll: root.scrollWidth - root.clientWidth,
    wide: wide.map((e) => `${e.tagName} ${e.className}`).slice(0, 5),
    links: links.length,
    dead: links.filter((l) => !l.startsWith("#") || !page.getElementById(l.slice(1))),
    narrow: shown("nav .narrow"), wide_nav: shown("nav .wide"), paper: pixel,
    ink: frame.contentWindow.getComputedStyle(page.querySelector(".sheet svg")).fill,
    cards: page.querySelectorAll(".card").length,
  });
};
"""


@pytest.fixture(scope="module")
def markup(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Suite table_2 alone: one table, one figure, one card, and every part of the page."""
    results = made(tmp_path_factory.mktemp("report") / "results")
    assert report.main(["--results", str(results)]) == 2, "the other suites are missing"
    return (results / "report.html").read_text(encoding="utf-8")


def looked_at(markup: str, width: int, dark: bool, folder: Path) -> dict[str, Any]:
    """What the probe sees in a frame `width` pixels wide; a frame can be as narrow as a phone."""
    assert BROWSER is not None
    frame = f'<iframe id="page" style="width: {width}px; height: 900px; border: 0" srcdoc="'
    outer = folder / "outer.html"
    outer.write_text(
        f'<!doctype html><meta charset="utf-8">{frame}{html.escape(markup)}"></iframe>'
        f"<script>{PROBE}</script>",
        encoding="utf-8",
    )
    options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr")
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    where = (f"--user-data-dir={folder / 'profile'}", "--window-size=1500,1000")
    done = subprocess.run(
        [BROWSER, *options, scheme, *where, "--virtual-time-budget=5000", "--dump-dom"]
        + [outer.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    title = re.search(r"<title>(.*?)</title>", done.stdout.rpartition("</head>")[0], re.DOTALL)
    assert title is not None, f"the browser ran no script: {done.stderr[-500:]}"
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return json.loads(html.unescape(title[1])) | {"console": console}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1400, 420])
def test_the_page_is_whole_at_every_width(
    markup: str, width: int, dark: bool, tmp_path: Path
) -> None:
    seen = looked_at(markup, width, dark, tmp_path)
    assert not seen["errors"] and not seen["console"]
    assert seen["scroll"] <= 0 and not seen["wide"], "nothing but a table's own box scrolls"
    assert seen["links"] > 20 and not seen["dead"]
    assert (seen["narrow"], seen["wide_nav"]) == (width < 700, width >= 700)
    assert seen["cards"] == 1
    assert seen["paper"] == ("rgb(22, 22, 22)" if dark else "rgb(255, 255, 255)")
    assert seen["ink"] == ("rgb(228, 228, 226)" if dark else "rgb(28, 28, 28)")
