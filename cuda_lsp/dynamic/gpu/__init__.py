"""Kernels and programs on a GPU."""
