"""A table with its stamp, as files; and what every script that makes one does with its options."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from specfit.report.footer import Footer
from specfit.report.reader import ResultsReader
from specfit.report.table_format import Sheet, escape, to_csv, to_latex, to_markdown
from specfit.storage import atomic
from specfit.storage.suite import FULL, variant_of

Files = dict[str, bytes]  # name -> content


class Artifact(Protocol):
    """What a script's `make(reader)` gives: complete before anything is written."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def stamp(self) -> Footer: ...
    @property
    def folder(self) -> str:
        """Below results: tables or figures."""
        ...

    @property
    def files(self) -> Files: ...


@dataclass(frozen=True)
class Table:
    """`sheets` by a short key; the one called "" is the table itself. `notes` are sentences."""

    name: str
    title: str
    sheets: Mapping[str, Sheet]
    stamp: Footer
    notes: Sequence[str] = ()
    folder = "tables"

    @cached_property
    def files(self) -> Files:
        """<name>.md and .tex with every sheet, and one CSV a sheet."""
        found = {f"{self.name}.md": self._markdown(), f"{self.name}.tex": self._latex()}
        for key, sheet in self.sheets.items():
            name = f"{self.name}_{key}" if key else self.name
            head = "".join(f"# {line}\n" for line in (self._titled, sheet.title, *self._told))
            found[f"{name}.csv"] = head + to_csv(sheet)
        return {name: text.encode() for name, text in found.items()}

    @property
    def _titled(self) -> str:
        return self.stamp.titled(self.title)

    @property
    def _told(self) -> list[str]:
        return [*self.notes, self.stamp.text]

    def _markdown(self) -> str:
        parts = [f"### {self._titled}", *(to_markdown(sheet) for sheet in self.sheets.values())]
        return "\n\n".join([*parts, *self._told]) + "\n"

    def _latex(self) -> str:
        tabulars = [
            rf"\textbf{{{escape(sheet.title)}}}\\[2pt]"
            + "\n"
            + to_latex(sheet)
            + (f"\n\n{escape(sheet.note)}" if sheet.note else "")
            for sheet in self.sheets.values()
        ]
        caption = escape(" ".join([f"{self._titled}.", *self._told]))
        lines = [
            "% needs \\usepackage{booktabs}",
            r"\begin{table}",
            r"\centering\scriptsize",
            rf"\caption{{{caption}}}",
            "\n\n\\bigskip\n".join(tabulars),
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"


def write(artifacts: Sequence[Artifact], out: Path) -> list[Path]:
    """Every file of every artifact; all are rendered before the first is written."""
    rendered = [(out / one.folder, one.files) for one in artifacts]
    paths = []
    for folder, files in rendered:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            _write_bytes(folder / name, content)
            paths.append(folder / name)
    return paths


def _write_bytes(path: Path, content: bytes) -> None:
    atomic.write_file(path, lambda temporary: temporary.write_bytes(content))


# -- options of the scripts that draw -------------------------------------------------------------


def options_of(about: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=Path("results"), help="where rows are")
    parser.add_argument("--out", type=Path, help="instead of --results (and its variant's folder)")
    parser.add_argument("--size", default=FULL, help="as of `make reproduce SIZE=..`")
    parser.add_argument("arguments", nargs="*", help="overrides, as of `make reproduce ARGS=..`")
    return parser


def reader_of(options: argparse.Namespace) -> tuple[ResultsReader, Path]:
    """The rows' place and the folder that files go below: a variant never replaces what ships."""
    variant = variant_of(options.size, options.arguments)
    out = options.out or (options.results / "variants" / variant if variant else options.results)
    return ResultsReader(options.results, variant), out


def variant_words(options: argparse.Namespace) -> list[str]:
    """The options that make it this variant, as they were typed."""
    return [*([] if options.size == FULL else ["--size", options.size]), *options.arguments]
