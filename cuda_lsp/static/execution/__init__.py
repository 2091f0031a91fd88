"""A launch of a kernel program executed for all threads at once, and the trace that it leaves."""
