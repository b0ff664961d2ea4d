"""A recording in the place of a model: target, drafter and routes that look things up."""
