"""Write a quantised copy of a checkpoint: FP8 or int4 in the layouts that people download.

    python scripts/quantise_checkpoint.py specfit/weights/embedded/target /tmp/eight --format fp8
    python scripts/quantise_checkpoint.py SOURCE TARGET --format gptq --group 32

By rounding to the nearest and without data: for tests and timing, not for good text.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from specfit.base.entry import needs_extras, script

with needs_extras():
    from specfit.models.target.checkpoint import Checkpoint
    from specfit.models.target.family import geometry_of
    from specfit.models.target.quantise import KINDS, kind_of, quantise_checkpoint


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, help="a checkpoint in floating point")
    parser.add_argument("target", type=Path, help="a folder that does not exist")
    parser.add_argument("--format", choices=sorted(KINDS), required=True)
    parser.add_argument("--group", type=int, help="columns a scale stands for, of int4")
    told = parser.parse_args()
    if told.group is None:
        shape = geometry_of(Checkpoint(told.source).config)
        kind = kind_of(told.format, shape.hidden, shape.intermediate)
    else:
        kind = KINDS[told.format](told.group)
    quantise_checkpoint(told.source, told.target, kind)
    print(f"{told.target}: {told.format}, {kind.layout.name}")


if __name__ == "__main__":
    sys.exit(script(main))
