"""Workloads made from a seed: word problems and reports. Text lies in data files, rules in code."""
