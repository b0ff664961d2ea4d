"""One study of a finished replay, by hand: what the suites of experiments/ run.

python scripts/studies/study.py NAME results/replays/<id> [--out FILE]
python scripts/studies/study.py anatomy results/replays/<id> --cycle evaluation-3:12
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from specfit.base.entry import needs_extras, script

with needs_extras():
    from specfit.base.types import SpecfitError
    from specfit.workflows.studies import OF_A_REPLAY, study_named, write_study


def main() -> int:
    """Exit code: 0, or 2 and a sentence where the replay cannot be studied."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=OF_A_REPLAY)
    parser.add_argument("replay", type=Path)
    parser.add_argument("--out", type=Path, help="default: bench/NAME_<run id>.json of results")
    parser.add_argument("--cycle", help="of anatomy: REQUEST:NUMBER, for scripts/draw.py --cycle")
    options = parser.parse_args()
    if options.cycle and options.name != "anatomy":
        raise SpecfitError(f"--cycle is of the study anatomy; {options.name} takes whole replays")
    named = {"cycle": options.cycle} if options.cycle else {}
    document = study_named(options.name)(options.replay, **named)
    stem = f"{options.name}_{document['info']['run_id']}.json"
    out = options.out or options.replay.parent.parent / "bench" / stem
    write_study(options.name, document, out)
    print(f"rows: {out}")
    return 0


if __name__ == "__main__":
    sys.exit(script(main))
