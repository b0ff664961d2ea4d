"""Rows to tables, figures and one page."""
