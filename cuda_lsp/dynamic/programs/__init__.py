"""Whole programs: built or recorded, linked with a runtime of ours, run to their end."""
