"""Schemes of quantised checkpoints, one a file; `registry` has their list."""
