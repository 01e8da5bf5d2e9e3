"""Sensitivities of counting queries: pure functions on exact integers and rationals."""
