"""What may be done: statements sorted by who answers them, names allowed, prices, limits."""
