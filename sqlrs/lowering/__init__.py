"""Lowering in two passes: equalities first, then a place for every other condition."""
