"""Workloads: texts, prompts, scores."""
