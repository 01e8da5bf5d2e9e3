"""Items of FROM whose owner is known: a scan of a table, a query in parentheses."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import replace

from sqlglot import exp

from sqlrs.catalog import Catalog, Column, Family, Table
from sqlrs.compiler.conditions import Reference
from sqlrs.compiler.flat import Occurrence
from sqlrs.compiler.from_items import FromItem, named
from sqlrs.compiler.names import Relation, fold_stored
from sqlrs.compiler.partitioned_expressions import ReadQuery
from sqlrs.compiler.partitioned_rows import Anchor, Ownership, Rows, Witness
from sqlrs.compiler.source import Source
from sqlrs.compiler.unit_kinds import HUGE, Known
from sqlrs.compiler.unit_scan import NotOwned, is_whole_value, unit_scan
from sqlrs.compiler.unit_values import constants_of, of_column
from sqlrs.effort import spend
from sqlrs.trees.build import inner, rows_of
from sqlrs.trees.identifiers import column

_NODES_PER_STEP = 4
# Computed values whose type every engine knows by the name that it has here.
_NAMED = frozenset({Family.INTEGER, Family.TEXT, Family.DATE, Family.TIMESTAMP, Family.BOOLEAN})


def derived_rows(
    part: ReadQuery,
    here: str,
    name: str | None,
    alias: exp.Expr | None,
    columns: MutableMapping[Reference, Known],
    source: Source,
) -> Rows:
    """A query as an item of FROM under the alias ``here``; ``columns`` learns what it shows."""
    computed: list[Column] = []
    for number, output in enumerate(part.outputs):
        known = output.known
        if known.origin is None and known.kind not in (None, HUGE) and known.kind.family in _NAMED:
            # Conditions on it may still say which values it has.
            chosen = constants_of(output.value)
            computed.append(Column(f"c{number}", known.kind, known.nullable, chosen))
            known = replace(known, origin=of_column(computed[-1], here).origin)
        columns[here, f"c{number}"] = known
    witness = part.witness
    if computed:
        table = Table(here, tuple(computed))
        witness += Witness((Occurrence(here, table, True, exp.to_identifier(here)),))
    shown = tuple((one.name, _place(here, number)) for number, one in enumerate(part.outputs))
    owners: tuple[Ownership, ...] = ()
    if part.word is not None:
        assert part.hidden is not None
        columns[here, f"c{len(part.outputs)}"] = Known(part.hidden.kind, nullable=False)
        ids = tuple(_place(here, one) for one in (len(part.outputs), *part.ids))
        anchors = tuple(
            Anchor(held, key, tuple(_place(here, one) for one in places))
            for held, key, places in part.anchors
        )
        owners = (Ownership(ids, part.word, part.single, anchors),)
    item = named(name, shown, alias, None, source)
    tree = inner(part.write(part.word is not None), here)
    # Written once more for every query around it.
    spend(sum(1 for _ in tree.walk()) // _NODES_PER_STEP)
    return Rows(item, tree, (), owners, (), frozenset({here}), witness)


def beside(rows: Rows, columns: MutableMapping[Reference, Known]) -> Rows:
    """A query of FROM that reads the row beside it: nothing is known of it without that row."""
    (here,) = rows.aliases
    for place, known in list(columns.items()):
        if place[0] == here:
            columns[place] = replace(known, origin=None)
    alias = rows.tree.args["alias"].copy()
    tree = exp.Lateral(this=exp.Subquery(this=rows.tree.this), alias=alias)
    return replace(rows, tree=tree, witness=Witness())


def scanned_rows(
    table: Table,
    here: str,
    name: str,
    place: exp.Table,
    columns: MutableMapping[Reference, Known],
    catalog: Catalog,
    source: Source,
) -> tuple[Rows, tuple[Table, ...]]:
    """The rows of a table under the alias ``here``, those without an owner left out.

    And all tables that are read for them.
    """
    for one in table.columns:
        columns[here, one.name] = of_column(one, here)
    shown = tuple(one.name for one in table.columns)
    read: tuple[Table, ...] = (table,)
    owners: tuple[Ownership, ...] = ()
    tree: exp.Expr = rows_of(table, shown, here)
    if table.private:
        try:
            scan = unit_scan(table, catalog)
        except NotOwned as problem:
            raise source.refusal("unit_lost", place, problem.message, problem.hint) from None
        shown, read, tree = scan.shown, scan.tables, inner(scan.select, here)
        columns[here, scan.owner] = Known(scan.kind, nullable=False)
        owners = (_ownership(table, scan.owner, here, name, shown),)
        for held in owners[0].ids[1:]:
            columns[here, held.name] = replace(columns[here, held.name], nullable=False)
    visible = tuple((fold_stored(one, source.dialect), column(one, here)) for one in shown)
    item = FromItem((Relation(name, visible),), visible)
    witness = Witness((Occurrence(here, table, True, place),))
    unique = tuple(
        frozenset[exp.Expr](column(one, here) for one in key)
        for key in table.keys
        if key <= set(shown) and all(_is_ordered(table.column(one)) for one in key)
    )
    return Rows(item, tree, (), owners, (), frozenset({here}), witness, unique), read


def _is_ordered(one: Column) -> bool:
    """Whether values that are not equal are never at the same place of an order."""
    return not one.nullable and is_whole_value(one.type)


def _ownership(table: Table, hidden: str, here: str, name: str, shown: Sequence[str]) -> Ownership:
    [owner] = table.owners
    ids: list[exp.Expr] = [column(hidden, here)]
    word = owner.column
    anchors = [(table.identity, tuple(sorted(key)), tuple(sorted(key))) for key in table.keys]
    if owner.links:
        link = owner.links[0]
        word = link.columns[0]
        pairs = sorted(zip(link.key, link.columns, strict=True))
        anchors.append((link.table, tuple(k for k, _ in pairs), tuple(c for _, c in pairs)))
    else:
        ids.append(column(owner.column, here))
    single = not owner.links and frozenset({owner.column}) in table.keys
    found = tuple(
        Anchor(held, key, tuple(column(one, here) for one in columns))
        for held, key, columns in anchors
        if set(columns) <= set(shown)
    )
    return Ownership(tuple(ids), f"{name}.{word}", single, found)


def _place(here: str, number: int) -> exp.Column:
    return column(f"c{number}", here)
