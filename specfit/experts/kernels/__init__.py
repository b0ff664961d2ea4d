"""Triton kernels of the routed experts; imported only where Triton is used."""
