"""Options that several commands share, in bundles."""
