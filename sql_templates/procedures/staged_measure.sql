-- In rounds, all in one snapshot: PostgreSQL evaluates a subquery without references when its value is first needed. Without
-- OFFSET 0 it would write the expressions of one round into all that follow, and evaluate them more than once.
SELECT {last}.numbers
FROM (
SELECT ARRAY[
{first}
] AS numbers
OFFSET 0
) AS round_1
CROSS JOIN LATERAL (
SELECT ARRAY[
{frequencies}
]::numeric[] AS found
OFFSET 0
) AS frequencies
CROSS JOIN LATERAL (
SELECT ARRAY[{limits}]::numeric[] AS most
OFFSET 0
) AS limits
{rounds}
