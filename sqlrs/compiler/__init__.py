"""The compiler: SQL text -> conjunctive query, or a refusal; compile.py shows the order."""
