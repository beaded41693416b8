"""Questions that programs ask of captures (`tfrctrace mcp`), and short answers as JSON."""
