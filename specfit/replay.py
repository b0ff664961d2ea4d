"""`python -m specfit.replay recording=<id or folder>`: any selector, slots, policy and profile over
recorded pools, through the decoder itself, without a model and without torch."""

import sys

from specfit.base.entry import needs_extras

with needs_extras():
    from specfit.workflows.hydra_cli import hydra_command
    from specfit.workflows.replay import replay

if __name__ == "__main__":
    sys.exit(hydra_command(replay))
