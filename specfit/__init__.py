"""specfit: cost-aware selection of draft trees for offloaded Mixture-of-Experts decoding."""
