-- Rows of public tables that were read elsewhere, in the types that the shadow found for their query.
SELECT column_list FROM pg_catalog.json_to_recordset($1::pg_catalog.json) AS carried (column_kinds)
