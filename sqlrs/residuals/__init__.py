"""Query -> residual queries, and which of them are the same but for their names."""
