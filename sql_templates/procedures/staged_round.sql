CROSS JOIN LATERAL (
SELECT CASE
  WHEN cardinality({before}.numbers) = {total} THEN {before}.numbers
  WHEN sqlrs.settled(
    steps => {steps},
    starts => {starts},
    answers => {answers},
    monomials => {monomials},
    ceilings => {ceilings},
    degrees => {degrees},
    products => {products},
    measured => {before}.numbers,
    limits => limits.most,
    total => {total},
    ratio => {ratio}
  ) THEN {before}.numbers || limits.most[{open}:]
  ELSE {before}.numbers || ARRAY[
{numbers}
]
END AS numbers
OFFSET 0
) AS {round}
