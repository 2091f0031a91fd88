"""What stands around a file: its build command, the headers it needs, the files that include it."""
