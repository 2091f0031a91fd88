"""Repairs of findings: what is tried, and what of it the finished analysis of the edited text bears out."""
