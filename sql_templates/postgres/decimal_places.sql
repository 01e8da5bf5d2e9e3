-- How many decimal places the values of columns of the type numeric(precision, places) have, or of a domain over it.
SELECT known.table_schema::text, known.table_name::text, known.column_name::text, known.numeric_scale::int
FROM information_schema.columns AS known
WHERE known.data_type = 'numeric'
  AND known.numeric_scale BETWEEN 0 AND 18
