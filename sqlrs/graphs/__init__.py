"""Graphs: patterns as analyst SQL, and a generated graph to try them on."""
