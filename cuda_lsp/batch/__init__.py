"""Many files at once, as the command line checks them: each in a process of its own that may die."""
