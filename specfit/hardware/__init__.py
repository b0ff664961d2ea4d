"""Clocks, the modelled timeline, hardware profiles."""
