"""GoogleSQL's own differential privacy (BigQuery's clause), in the WebAssembly build of zetasql."""

from functools import partial

from pandas_questions import buyers_in_segment, of_1995, prices, read
from peer_frame import ask, bounds, epsilon, laplace, refuse
from zetasql.api import CatalogBuilder, PreparedQuery, TableBuilder, create_table_content
from zetasql.types import (
    AnalyzerOptions,
    LanguageFeature,
    LanguageOptions,
    ResolvedASTRewrite,
    TypeKind,
    ZetaSQLBuiltinFunctionOptions,
)

KINDS = {"i": TypeKind.TYPE_INT64, "f": TypeKind.TYPE_DOUBLE, "O": TypeKind.TYPE_STRING}
DELTA = 1e-9


def answered(frame, unit, measure, grouped=""):
    """The clause over one table ``t``; its unit is a column."""
    table = TableBuilder("t")
    for name in frame.columns:
        table = table.add_column(name, KINDS[frame[name].dtype.kind])
    language = LanguageOptions.maximum_features()
    language.enabled_language_features = [
        *language.enabled_language_features,
        LanguageFeature.FEATURE_DIFFERENTIAL_PRIVACY,
    ]
    options = AnalyzerOptions(
        language_options=language, enabled_rewrites=[ResolvedASTRewrite.REWRITE_ANONYMIZATION]
    )
    catalog = CatalogBuilder("peers").add_table(table.build())
    functions = ZetaSQLBuiltinFunctionOptions(language_options=language)
    catalog = catalog.with_builtin_functions(functions).build()
    clause = (
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = {epsilon}, delta = {DELTA}, "
        f"max_groups_contributed = 1, privacy_unit_column = {unit}) {grouped}{measure} AS n FROM t"
    )
    if grouped:
        clause += f" GROUP BY {grouped.rstrip(', ')} ORDER BY 1"
    columns = (frame[name].tolist() for name in frame.columns)
    rows = create_table_content([list(row) for row in zip(*columns, strict=True)])
    builder = PreparedQuery.builder().set_sql(clause).set_analyzer_options(options)
    with builder.set_catalog(catalog).set_table_content({"t": rows}).prepare() as query:
        found = query.execute().content.table_data.row
    return [row.cell[-1].int64_value or row.cell[-1].double_value for row in found]


def t1():
    orders = of_1995(read("orders", ["o_orderkey", "o_orderdate"]))
    return answered(orders[["o_orderkey"]], "o_orderkey", count(1))


def t2():
    orders = read("orders", ["o_orderkey", "o_orderstatus"])
    return answered(orders, "o_orderkey", count(1), "o_orderstatus, ")


def t3(limit):
    return answered(buyers_in_segment().to_frame(), "o_custkey", count(limit))


def t5(limit, price):
    bound = f"contribution_bounds_per_group => (0, {limit * price})"
    return answered(prices(), "o_custkey", f"SUM(o_totalprice, {bound})")


def count(limit):
    return f"COUNT(*, contribution_bounds_per_group => (0, {limit}))"


ask("T1", t1, "the filter in pandas; an id of each row; delta", laplace(1 / epsilon))
ask("T2", t2, "an id of each row; groups come from the data (delta)")
for name, (orders, price) in bounds.items():
    limit = f"at most {orders} orders of a customer; delta"
    law = laplace(orders / epsilon)
    ask("T3", partial(t3, orders), f"the join in pandas; {limit}", law, name)
    law = laplace(orders * price / epsilon)
    ask("T5", partial(t5, orders, price), f"{limit}; prices up to {price:,}", law, name)
refuse("T4", "a join of private tables has to be by the privacy unit, which is a row here")
refuse("T4 triangles", "a join of private tables has to be by the privacy unit")
