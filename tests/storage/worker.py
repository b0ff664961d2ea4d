"""A process that works on a run of five requests; prints which ones it did.

python -m tests.storage.worker RUNS [DIE_IN]: DIE_IN is the request in whose writing it dies.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from specfit.storage import request_files
from specfit.storage.request_files import Part
from specfit.storage.run_folder import RunStore
from tests.fakes.rows import manifest, part

RUN_ID = "a" * 12
IDS = ["q0", "q/1", "q 2", "..", "q4"]


def part_of(name: str) -> Part:
    return part(name, (1, 2 + IDS.index(name), 1))


def main(runs: Path, die_in: str | None = None) -> list[str]:
    store, did = RunStore(runs, RUN_ID), []
    with store.locked():
        store.begin(manifest(IDS, RUN_ID), "seed: 0\n")
        if store.is_finished():
            return did
        for name in IDS[len(store.finished_requests()) :]:
            if name == die_in:
                request_files.np.savez = lambda *a, **k: os._exit(9)
            time.sleep(0.02)
            store.add(part_of(name))
            did.append(name)
        store.finish()
    return did


if __name__ == "__main__":
    print(*main(Path(sys.argv[1]), *sys.argv[2:]), sep="\n")
