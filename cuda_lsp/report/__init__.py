"""Findings for everything but editors: people at a terminal, and the formats that CI systems read."""
