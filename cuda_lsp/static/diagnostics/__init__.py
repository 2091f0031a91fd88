"""Findings in a trace: one analysis a file."""
