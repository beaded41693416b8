"""A study file, parsed and checked."""
