"""Statistics of repeated runs."""
