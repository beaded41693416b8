"""Output of a study: its page, tables, figures and files."""
