"""The counts of ``relational``: the joins of TPC-H's queries, and a snowflake with two fact tables.

What stands between braces is a condition on one table; the yardstick of a cell is the plain count
without them. Aggregates inside conditions, which no count of rows has, are replaced by constants.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

KEYS = {
    "customer": ["c_custkey"],
    "orders": ["o_orderkey"],
    "lineitem": ["l_orderkey", "l_linenumber"],
    "part": ["p_partkey"],
    "supplier": ["s_suppkey"],
    "partsupp": ["ps_partkey", "ps_suppkey"],
    "nation": ["n_nationkey"],
    "region": ["r_regionkey"],
}
PUBLIC = ["nation", "region"]
SNOWFLAKE_TABLES = (
    *("department", "category", "product", "country", "city", "store", "customer"),
    *("sale", "click", "refund"),
)
SNOWFLAKE_KEYS = {name: ["id"] for name in SNOWFLAKE_TABLES}
SNOWFLAKE_PUBLIC = ["department", "country"]


@dataclass(frozen=True)
class Case:
    """One count."""

    name: str
    text: str

    @property
    def sql(self) -> str:
        """The query with all its conditions."""
        return re.sub(r"[{}]", "", self.text)

    @property
    def unfiltered(self) -> str:
        """The query without its conditions on one table."""
        return re.sub(r"\{[^}]*\}", "", self.text)

    def tables(self, known: Iterable[str]) -> list[str]:
        """Which of the known tables it names."""
        words = set(re.findall(r"\w+", self.sql))
        return [name for name in known if name in words]


TPCH = [
    Case(
        "Q2",
        """
SELECT count(*) FROM part, supplier, partsupp, nation, region
WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey
  AND n_regionkey = r_regionkey {AND r_name = 'EUROPE'} {AND p_size = 15 AND p_type LIKE '%BRASS'}
""",
    ),
    Case(
        "Q3",
        """
SELECT count(*) FROM customer, orders, lineitem
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey {AND c_mktsegment = 'BUILDING'}
  {AND o_orderdate < DATE '1995-03-15'} {AND l_shipdate > DATE '1995-03-15'}
""",
    ),
    Case(
        "Q4",
        """
SELECT count(*) FROM orders
WHERE EXISTS (SELECT 1 FROM lineitem
              WHERE l_orderkey = o_orderkey {AND l_commitdate < l_receiptdate})
  {AND o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01'}
""",
    ),
    Case(
        "Q5",
        """
SELECT count(*) FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
  AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
  {AND r_name = 'ASIA'} {AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'}
""",
    ),
    Case(
        "Q7",
        """
SELECT count(*) FROM supplier, lineitem, orders, customer, nation AS n1, nation AS n2
WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
  AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey
  AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY')
    OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
  {AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'}
""",
    ),
    Case(
        "Q8",
        """
SELECT count(*) FROM part, supplier, lineitem, orders, customer, nation AS n1, nation AS n2, region
WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey
  AND o_custkey = c_custkey AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey
  AND s_nationkey = n2.n_nationkey {AND r_name = 'AMERICA'}
  {AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'}
  {AND p_type = 'ECONOMY ANODIZED STEEL'}
""",
    ),
    Case(
        "Q9",
        """
SELECT count(*) FROM part, supplier, lineitem, partsupp, orders, nation
WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey
  AND p_partkey = l_partkey AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey
  {AND p_name LIKE '%green%'}
""",
    ),
    Case(
        "Q10",
        """
SELECT count(*) FROM customer, orders, lineitem, nation
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND c_nationkey = n_nationkey
  {AND o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01'}
  {AND l_returnflag = 'R'}
""",
    ),
    Case(
        "Q11",
        """
SELECT count(*) FROM partsupp, supplier, nation
WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey {AND n_name = 'GERMANY'}
""",
    ),
    Case(
        "Q12",
        """
SELECT count(*) FROM orders, lineitem WHERE o_orderkey = l_orderkey
  {AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
   AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'}
""",
    ),
    Case(
        "Q16",
        """
SELECT count(*) FROM partsupp, part
WHERE p_partkey = ps_partkey {AND p_brand <> 'Brand#45'} {AND p_type NOT LIKE 'MEDIUM POLISHED%'}
  {AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)}
  AND NOT EXISTS (SELECT 1 FROM supplier
                  WHERE s_suppkey = ps_suppkey {AND s_comment LIKE '%Customer%Complaints%'})
""",
    ),
    Case(
        "Q17",
        """
SELECT count(*) FROM lineitem, part WHERE p_partkey = l_partkey
  {AND p_brand = 'Brand#23' AND p_container = 'MED BOX'} {AND l_quantity < 6}
""",
    ),
    Case(
        "Q18",
        """
SELECT count(*) FROM customer, orders, lineitem
WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey
  AND o_orderkey IN (SELECT l_orderkey FROM lineitem {WHERE l_quantity > 49})
  {AND o_totalprice > 400000}
""",
    ),
    Case(
        "Q20",
        """
SELECT count(*) FROM supplier, nation
WHERE s_nationkey = n_nationkey {AND n_name = 'CANADA'}
  AND s_suppkey IN (
    SELECT ps_suppkey FROM partsupp, part, lineitem
    WHERE p_partkey = ps_partkey AND l_partkey = ps_partkey AND l_suppkey = ps_suppkey
      {AND p_name LIKE 'forest%'} {AND ps_availqty > 100}
      {AND l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'})
""",
    ),
    Case(
        "Q21",
        """
SELECT count(*) FROM supplier, lineitem AS l1, orders, nation
WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND s_nationkey = n_nationkey
  {AND o_orderstatus = 'F'} {AND l1.l_receiptdate > l1.l_commitdate} {AND n_name = 'SAUDI ARABIA'}
  AND EXISTS (SELECT 1 FROM lineitem AS l2
              WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
  AND NOT EXISTS (SELECT 1 FROM lineitem AS l3
                  WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey
                    {AND l3.l_receiptdate > l3.l_commitdate})
""",
    ),
    Case(
        "Q22",
        """
SELECT count(*) FROM customer
WHERE NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)
  {AND substring(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17')} {AND c_acctbal > 0}
""",
    ),
]

SNOWFLAKE = [
    Case(
        "sales of a department in a country",
        """
SELECT count(*) FROM sale, product, category, department, store, city, country
WHERE sale.product = product.id AND product.category = category.id
  AND category.department = department.id AND sale.store = store.id AND store.city = city.id
  AND city.country = country.id
  {AND department.name = 'department 3'} {AND country.name = 'country 2'}
""",
    ),
    Case(
        "sales at home",
        """
SELECT count(*) FROM sale, customer, store, city
WHERE sale.customer = customer.id AND sale.store = store.id AND customer.city = store.city
  AND store.city = city.id {AND sale.day < 100} {AND city.size > 5}
""",
    ),
    Case(
        "refunds of sales",
        """
SELECT count(*) FROM refund, sale, product, customer
WHERE refund.sale = sale.id AND sale.product = product.id AND sale.customer = customer.id
  {AND refund.day > 200} {AND product.price > 50} {AND customer.age < 40}
""",
    ),
    Case(
        "sales and clicks of a customer",
        """
SELECT count(*) FROM sale, click, customer
WHERE sale.customer = customer.id AND click.customer = customer.id
  {AND sale.day < 100} {AND customer.age < 40} {AND click.day < 50}
""",
    ),
    Case(
        "sales and clicks of a customer and a product",
        """
SELECT count(*) FROM sale, click, customer, product
WHERE sale.customer = customer.id AND click.customer = customer.id
  AND sale.product = product.id AND click.product = product.id {AND product.price > 50}
""",
    ),
    Case(
        "sales and clicks of a category, same customer",
        """
SELECT count(*) FROM sale, click, product AS bought, product AS seen
WHERE sale.customer = click.customer AND sale.product = bought.id AND click.product = seen.id
  AND bought.category = seen.category {AND sale.day < 100}
""",
    ),
    Case(
        "clicks before a sale",
        """
SELECT count(*) FROM sale, click, customer
WHERE sale.customer = customer.id AND click.customer = customer.id AND click.day < sale.day
  {AND customer.age < 40}
""",
    ),
    Case(
        "customers who clicked and never bought",
        """
SELECT count(*) FROM customer, city
WHERE customer.city = city.id AND EXISTS (SELECT 1 FROM click WHERE click.customer = customer.id)
  AND NOT EXISTS (SELECT 1 FROM sale WHERE sale.customer = customer.id) {AND customer.age < 40}
""",
    ),
]
