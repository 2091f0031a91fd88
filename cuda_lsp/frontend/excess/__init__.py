"""What of a text asks clang for more than it may, told from the text: clang itself has no such limits."""
