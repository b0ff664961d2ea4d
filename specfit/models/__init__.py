"""The target, the draft head and the route sources."""
