"""The emulator in C: the same programs, the same results."""
