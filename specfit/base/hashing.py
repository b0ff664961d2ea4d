"""Counter-based hashing: random draws that depend on their names and not on the order of calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, inline="always")
def mix(key: Any, value: Any) -> Any:
    """Hash `value` into the 64-bit `key` (splitmix64's finaliser)."""
    z = np.uint64(key) + np.uint64(0x9E3779B97F4A7C15) * (np.uint64(value) + np.uint64(1))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, inline="always")
def unit(key: Any) -> Any:
    """A float64 in [0, 1) from a hash."""
    return np.float64(key >> np.uint64(11)) * 2.0**-53
