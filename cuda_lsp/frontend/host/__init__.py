"""Host code, read from text: launches, and what their arguments are."""
