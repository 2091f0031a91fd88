"""Python programs: what they compile at run time is noted, built for the check, and checked when launched."""
