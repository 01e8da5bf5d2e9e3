-- The tree of a text, as the engine itself reads it; nothing of the text is run.
SELECT json_serialize_sql(CAST($text AS VARCHAR));
