SELECT count(*)
FROM edge AS a
JOIN edge AS b ON a.dst = b.src
JOIN edge AS c ON b.dst = c.src AND c.dst = a.src
WHERE a.src <> a.dst AND b.src <> b.dst AND c.src <> c.dst
