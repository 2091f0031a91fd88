"""Which launches and arguments a kernel is analysed under, and how far an assumed one is believed.

The room knows kernels and their text only: executions and solvers stand above it and are asked through
callables.
"""
