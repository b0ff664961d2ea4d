"""Cost-aware selection of draft trees for offloaded Mixture-of-Experts decoding."""

__version__ = "0.1.0"
