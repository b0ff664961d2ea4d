"""`python -m specfit.run`: one config, one decoder, one workload, rows and a closing table."""

import sys

from specfit.base.entry import needs_extras

with needs_extras():
    from specfit.workflows.hydra_cli import hydra_command
    from specfit.workflows.live_run import run

if __name__ == "__main__":
    sys.exit(hydra_command(run))
