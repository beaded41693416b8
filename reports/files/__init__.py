"""Results as files: tables, JSON, JUnit, Markdown."""
