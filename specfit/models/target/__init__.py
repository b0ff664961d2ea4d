"""The target: a transformers MoE with its experts detached, and its checkpoint."""
