"""Route sources: which experts a node will use, before it is verified."""
