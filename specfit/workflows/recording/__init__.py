"""Records pools and routes at every position."""
