-- Which tables show the rows of which others: parents with their partitions and inheritance children.
SELECT parent.oid, child.inhrelid
FROM pg_inherits AS child
JOIN pg_class AS parent ON parent.oid = child.inhparent
WHERE parent.relkind IN ('r', 'p', 'f')
