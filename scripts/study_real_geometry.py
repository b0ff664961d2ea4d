"""Every system under real routes, over graftings and seeds: bench/real_geometry_<run id>.json.

    python -m specfit.replay recording=<id> selector=specfit cache_slots=48
    python scripts/study_real_geometry.py results/replays/<run id>

Both: make reproduce SUITE=real_geometry.

Half-real: trees and acceptances of the replay's recording, routes of the trace that ships with the
package. Fewer than 40 requests have two seeds a grafting, a single one shows that it can be drawn.
"""

from __future__ import annotations

import sys

from checking.studying import study_command

from specfit.workflows.real_geometry import real_geometry

if __name__ == "__main__":
    sys.exit(study_command(__doc__, "real_geometry", real_geometry, compact=True))
