"""Profiles that scores follow: files of TOML with thresholds, their source and its version."""
