"""libclang's cursors become the kernel program, everything that a kernel calls inlined."""
