"""Fits b_k and beta from forced trees (app. B)."""
