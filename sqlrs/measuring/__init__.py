"""Snapshot and plans -> values. Everything that is measured here is private."""
