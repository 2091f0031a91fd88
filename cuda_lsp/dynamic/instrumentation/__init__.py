"""Probes into PTX, and the detector that they call."""
