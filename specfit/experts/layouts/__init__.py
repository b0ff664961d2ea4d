"""Layouts of a quantised weight matrix, one a file: `specfit.experts.expert_format.Layout`."""
