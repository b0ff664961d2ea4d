"""`python -m specfit.calibrate`: fit b_0 .. b_K and beta for a run's machine, or find the fit.

A calibration is a small run with its own id. It is looked up by that id and made when missing.
"""

import sys

from specfit.base.entry import needs_extras

with needs_extras():
    from specfit.workflows.hydra_cli import hydra_command
    from specfit.workflows.live_run import calibrate

if __name__ == "__main__":
    sys.exit(hydra_command(calibrate))
