-- How many of these Parquet files have a column in which they differ from the first one's schema.
SELECT count(*)
FROM (
  SELECT list(
    struct_pack(
      a := name, b := type, c := type_length, d := num_children, e := converted_type, f := scale, g := precision, h := logical_type
    )
  ) AS columns
  FROM parquet_schema($path)
  GROUP BY file_name
)
GROUP BY columns;
