"""Residuals -> plans: pure choices by shape, schema and statistics; no SQL, no engine."""
