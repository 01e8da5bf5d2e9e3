"""Small ways to make sqlglot trees that mean the same in every dialect."""
