"""`python -m specfit.probe`: this machine in numbers, and how far the modelled clock is off with
them.

Half of the requests make the profile, the other half hold it against the wall clock. The file is
used by `gpu=local gpu.profile=<file>` (and gpu.clock=modelled to bill instead of measure).
"""

import sys

from specfit.base.entry import needs_extras

with needs_extras():
    from specfit.workflows.hydra_cli import hydra_command
    from specfit.workflows.probing.probe import probe

if __name__ == "__main__":
    sys.exit(hydra_command(probe))
