"""Metrics of one flow."""
