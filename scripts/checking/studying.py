"""What every study of a replay shares: its command line, a sentence for what is wrong, one file."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from specfit.base.types import SpecfitError
from specfit.storage.atomic import write_json, write_text

Study = Callable[[Path], Mapping[str, Any]]
"""A replay's folder -> a document with the replay's `info`. Raises SpecfitError."""


def study_command(about: str | None, stem: str, study: Study, compact: bool = False) -> int:
    """Writes bench/<stem>_<run id>.json, or --out; `compact` where it is long. Exit code."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("replay", type=Path)
    parser.add_argument("--out", type=Path, help=f"default: bench/{stem}_<run id>.json of results")
    options = parser.parse_args()
    try:
        document = study(options.replay)
    except SpecfitError as error:
        print(f"specfit: {error}", file=sys.stderr)
        return 2
    name = f"{stem}_{document['info']['run_id']}.json"
    out = options.out or options.replay.parent.parent / "bench" / name
    out.parent.mkdir(parents=True, exist_ok=True)
    if compact:
        write_text(out, json.dumps(document) + "\n")
    else:
        write_json(out, document)
    print(f"rows: {out}")
    return 0
