"""Appendix A: bounds, affine costs, legal subtrees."""
