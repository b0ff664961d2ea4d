"""`python -m specfit.show <run>`: prompts, answers, references, with accepted drafts in brackets.

A run is an id in results/runs, the first letters of one, or a folder. Needs the run's tokenizer and
dataset, and reads no weight.
"""

import argparse
import sys
from pathlib import Path

from specfit.base.entry import needs_extras, script

with needs_extras():
    from specfit.workflows.shown import show


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0; 2 after one sentence where the run or its dataset is not there."""
    parser = argparse.ArgumentParser(
        prog="python -m specfit.show",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", help="id or folder")
    parser.add_argument("-n", type=int, default=2, help="requests to show (2)")
    parser.add_argument("--results", type=Path, default=Path("results"))
    options = parser.parse_args(argv)
    show(options.run, options.results, options.n)
    return 0


if __name__ == "__main__":
    sys.exit(script(main))
