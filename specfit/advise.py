"""`python -m specfit.advise`: what to run on a machine, and whether speculation pays there.

Records a few requests of the workload once (of an embedded one: development text), replays every
setting over them under the profile, and prints one screen. With gpu=local the profile is this
machine's own probe, made when missing.
"""

import sys

from specfit.base.entry import needs_extras

with needs_extras():
    from specfit.workflows.advise import advise
    from specfit.workflows.hydra_cli import hydra_command

if __name__ == "__main__":
    sys.exit(hydra_command(advise))
