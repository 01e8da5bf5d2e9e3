"""Plan -> sqlglot tree: one statement for each residual, in the form that the plan says."""
