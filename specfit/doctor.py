"""`python -m specfit.doctor`: what a run needs and what this machine has, before any fetch.

Reads two config.json and one index, from folders or from the hub, and asks the machine. No weight
is read, no run is begun. It ends with the largest slot count that fits and one ready command.
"""

import sys

from specfit.base.entry import needs_extras

with needs_extras():
    from specfit.workflows.doctor import doctor
    from specfit.workflows.hydra_cli import hydra_command

if __name__ == "__main__":
    sys.exit(hydra_command(doctor))
