"""The cycle and what it is assembled from: live, replayed, calibrated."""
