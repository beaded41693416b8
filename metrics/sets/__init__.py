"""Metrics of sets of flows."""
