"""The commands, one file for each: options, one call, output."""
