"""Cost-aware selection of draft trees for offloaded Mixture-of-Experts decoding."""

from specfit.base import library_caches

__version__ = "0.1.0"

library_caches.ensure()
