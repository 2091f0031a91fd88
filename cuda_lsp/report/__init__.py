"""Findings for everything but editors: terminal, JSON, SARIF, annotations of GitHub."""
