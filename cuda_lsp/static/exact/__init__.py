"""The exact machine: a kernel on plain integers, one thread alone or many in a real schedule."""
