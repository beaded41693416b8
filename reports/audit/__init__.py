"""The page of an audit: verdicts, incidents with their causes, and each link over time."""
