"""`python -m specfit.record`: what a run decodes and could have drafted, at every position, once.

`record.merge=[a,b]` joins recordings of different requests (`record.shard=i/n`) instead, and
`recording=<id> routes=learned` adds to a recording what that route source predicts in it.
"""

import sys

from specfit.base.entry import needs_extras

with needs_extras():
    from specfit.workflows.hydra_cli import hydra_command
    from specfit.workflows.recording.record import record

if __name__ == "__main__":
    sys.exit(hydra_command(record))
