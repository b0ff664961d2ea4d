"""A folder that `evaluate.load` reads."""
