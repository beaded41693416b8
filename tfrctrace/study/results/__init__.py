"""Results of a study: quantities by scenario, differences, claims."""
