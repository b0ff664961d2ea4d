"""`make reproduce` in children that are killed at random moments, until one of them finishes.

    python tests/suites/killing.py <experiments> <whole> <killed> <kills> [overrides]

Children are forked once everything is imported, so that a moment falls into the work. Prints how
many were killed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

SCRIPTS = Path(__file__).parents[3] / "scripts"
sys.path[:0] = [str(SCRIPTS)]

import reproduce  # noqa: E402

from specfit.base.entry import script  # noqa: E402


def child(experiments: str, results: str, overrides: list[str]) -> int:
    pid = os.fork()
    if pid == 0:
        folders = ["--experiments", experiments, "--results", results]
        sys.argv = ["reproduce.py", *folders, "--", *overrides]
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        os._exit(script(reproduce.main))
    return pid


def seconds_alone(*arguments: object) -> float:
    begun = time.monotonic()
    _, status = os.waitpid(child(*arguments), 0)  # type: ignore[arg-type]
    assert os.waitstatus_to_exitcode(status) == 0
    return time.monotonic() - begun


def main() -> None:
    experiments, whole, killed, kills, *overrides = sys.argv[1:]
    work_s = seconds_alone(experiments, whole, overrides)
    plan_s = seconds_alone(experiments, whole, overrides)  # nothing is left to run
    moments, done = random.Random(20_261), 0
    while done < int(kills):
        pid = child(experiments, killed, overrides)
        time.sleep(plan_s + moments.uniform(0, 2 * (work_s - plan_s) / int(kills)))
        if os.waitpid(pid, os.WNOHANG)[0]:
            break
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        done += 1
    seconds_alone(experiments, killed, overrides)
    print(done)


if __name__ == "__main__":
    main()
