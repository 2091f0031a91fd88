"""A real schedule on a real memory: races that an execution shows."""
