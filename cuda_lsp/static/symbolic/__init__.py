"""A kernel program for one generic thread: terms, barrier intervals, what arithmetic alone refutes."""
