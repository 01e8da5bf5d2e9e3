/* The largest number of results that one value of the external variable allows, in one pass.

   Each row of "intervals" allows the values between (low, low_phase) and (high, high_phase), both
   included; a phase of 1 or -1 stands for a point just after or just before the value. Walking all
   ends in order, the running sum is the number of results that the current point allows. Starts
   come before ends at the same point, so that touching intervals overlap.

   "boundary" stands for all columns of the boundary. */
WITH intervals AS (
  SELECT boundary, low, low_phase, high, high_phase, results FROM grouped_rows
), steps AS (
  SELECT boundary, low AS place, low_phase AS phase, 0 AS closing, results AS change
  FROM intervals
  WHERE low < high OR (low = high AND low_phase <= high_phase)
  UNION ALL
  SELECT boundary, high AS place, high_phase AS phase, 1 AS closing, -results AS change
  FROM intervals
  WHERE low < high OR (low = high AND low_phase <= high_phase)
), changes AS (
  SELECT boundary, place, phase, closing, SUM(change) AS change
  FROM steps
  GROUP BY boundary, place, phase, closing
), overlapping AS (
  SELECT SUM(change) OVER (PARTITION BY boundary ORDER BY place ASC, phase ASC, closing ASC) AS results
  FROM changes
)
SELECT COALESCE(MAX(results), 0) FROM overlapping
