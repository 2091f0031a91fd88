"""Python programs: what they compile at run time is noted, compiled for the check, and checked as they launch it."""
