"""The simulator beside other engines' counters and a measured slot curve: bench/validation.json.

python scripts/study_validation.py [--models qwen gemma gptoss] [--out FILE]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from specfit.storage.atomic import write_json
from specfit.workflows.validation import COUNTED, validation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--models", nargs="+", choices=list(COUNTED), default=list(COUNTED))
    parser.add_argument("--out", type=Path, default=Path("results/bench/validation.json"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(options.out, validation(options.models))
    print(f"rows: {options.out}")


if __name__ == "__main__":
    main()
