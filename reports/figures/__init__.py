"""Figures of a report and how they are drawn."""
