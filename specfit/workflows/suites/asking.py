"""The command line that plan, reproduce and verify share."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from specfit.workflows.suites.files import FOLDER, SIZES, suite_names
from specfit.workflows.suites.planning import Plan, Wanted, plan_suites


def parser_of(text: str | None) -> argparse.ArgumentParser:
    """`text` is the script's docstring; its first line says what the script does."""
    parser = argparse.ArgumentParser(
        description=(text or "").splitlines()[0],
        epilog="key=value replaces a value in every cell; name:key=value in those with that name",
    )
    parser.add_argument("--suite", nargs="+", action="extend", help="default: every suite")
    parser.add_argument("--size", choices=SIZES, default=SIZES[0])
    parser.add_argument("--repeats", type=int, help="of every run; default: as the suite says")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--experiments", type=Path, default=FOLDER)
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    return parser


def plans_of(options: argparse.Namespace, is_to_run: bool = True) -> list[Plan]:
    """Raises SpecfitError for a suite, a size or an override that is not understood; if they are to
    be run, also where no cell can be."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    requested = Wanted(options.size, tuple(options.overrides), options.repeats, options.results)
    names = options.suite or suite_names(options.experiments)
    return plan_suites(names, requested, options.experiments, is_to_run)
