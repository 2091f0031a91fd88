"""The CPU emulator: PTX translated to NumPy, executed for all threads at once, and judged."""
