"""The HTML page, with its template, style and scripts."""
