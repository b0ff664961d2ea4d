"""The EAGLE-3 head: checkpoint, tree expansion, training."""
