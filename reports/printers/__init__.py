"""Results as text for a terminal, a notebook or a paper."""
