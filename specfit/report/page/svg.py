"""A figure's SVG inside the page: its ids made distinct, its size the box's."""

from __future__ import annotations

import re

from markupsafe import Markup

OPENING = re.compile(r'<svg [^>]*?viewBox="(?P<box>[\d. ]+)"[^>]*>')
# Comments, who drew it, and rules that would hold for the whole page (style.css has them).
DROPPED = re.compile(r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", re.DOTALL)
ID = re.compile(r'(?P<before>\bid="|xlink:href="#|url\(#)')


def inline(svg: str, name: str, alt: str) -> Markup:
    """`name` is distinct on the page; `alt` says in words what is seen."""
    opening = OPENING.search(svg)
    assert opening is not None, f"{name} is no SVG of ours"
    drawn = DROPPED.sub("", svg[opening.end() : svg.rindex("</svg>")])
    named = ID.sub(lambda found: f"{found['before']}{name}-", drawn).replace("xlink:href", "href")
    shown = Markup('<svg viewBox="{}" role="img" aria-label="{}">{}</svg>')
    return shown.format(opening["box"], alt, Markup(named.strip()))
