"""A probe of this machine as a cell of a suite: the profile that its other cells are billed by.

The same document as `python -m specfit.probe` leaves, so `gpu.profile=<its file>` reads it.
"""

from __future__ import annotations

from typing import Any

from specfit.workflows.probing.probe import REQUESTS, TOKENS


def study(
    on_disk: float = 0.0,
    link_gbps_cap: float = 0.0,
    requests: float = REQUESTS,
    tokens: float = TOKENS,
) -> dict[str, Any]:
    """`on_disk=1`: misses are read from disk. A cap of 0 GB/s is none; half of the requests make
    the profile, the others check the modelled clock with it."""
    from specfit.base.config import from_hydra
    from specfit.workflows.hydra_cli import compose
    from specfit.workflows.probing.probe import probe_document
    from specfit.workflows.progress import say

    line = ["gpu=local", "device=cpu", f"limit={int(requests)}", f"max_new_tokens={int(tokens)}"]
    line += ["offload.tier=disk"] if on_disk else []
    line += [f"gpu.link_gbps_cap={link_gbps_cap}"] if link_gbps_cap else []
    return probe_document(from_hydra(compose(line)), say)
