"""Results as pages, tables, figures and text; nothing here computes a result or knows where it came from."""
