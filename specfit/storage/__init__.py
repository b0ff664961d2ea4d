"""Rows in, numbers out: everything a figure or table script may import. Needs no torch."""
