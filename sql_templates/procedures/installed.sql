-- The installed queries, with the roles that may call each. Before version 3 none has an edition.
SELECT
  query.name,
  query.dataset,
  query.sql,
  query.shape,
  query.least_epsilon,
  query.repeats,
  ARRAY(
    SELECT granted.grantee::regrole::text
    FROM aclexplode(routine.proacl) AS granted
    WHERE granted.privilege_type = 'EXECUTE' AND granted.grantee <> routine.proowner
    ORDER BY 1
  ) AS roles,
  to_jsonb(query) ->> 'edition' AS edition
FROM sqlrs.queries AS query
JOIN pg_catalog.pg_proc AS routine
  ON routine.pronamespace = 'sqlrs'::regnamespace AND routine.proname = query.name
ORDER BY query.name;
