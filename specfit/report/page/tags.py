"""Elements as strings. What comes from outside is escaped here and nowhere else."""

from __future__ import annotations

import html
from typing import NewType

Html = NewType("Html", str)  # markup; a plain str is text


def text(words: str) -> Html:
    return Html(html.escape(words))


def join(*parts: Html, by: str = "\n") -> Html:
    return Html(by.join(part for part in parts if part))


def tag(name: str, *content: Html | None, **attributes: str) -> Html:
    """`class_` and `aria_label` become class and aria-label. Attribute values are text."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for key, value in attributes.items()
    )
    return Html(f"<{name}{told}>{''.join(part for part in content if part)}</{name}>")


def paragraph(words: str, **attributes: str) -> Html:
    return tag("p", text(words), **attributes)


def code(words: str) -> Html:
    return tag("code", text(words))


def link(name: str, words: str) -> Html:
    """To an element of this page."""
    return tag("a", text(words), href=f"#{name}")


def folded(summary: str, *content: Html) -> Html:
    """Closed until asked for."""
    return tag("details", tag("summary", text(summary)), *content)
