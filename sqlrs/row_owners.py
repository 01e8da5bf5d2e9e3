"""Who owns the rows of a table: as it was said, or by the one way that foreign keys lead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table
from sqlrs.errors import UsageError
from sqlrs.inputs.said_owners import SaidOwner
from sqlrs.records import dataclass
from sqlrs.units import Link, Owner
from sqlrs.values import values_of

# Two of their values are equal in Python exactly when the database says so: the units of a result
# with several owners are told apart there. NaN is not, nor is text under a collation.
_IDS = frozenset({Family.INTEGER, Family.DECIMAL, Family.TEXT, Family.DATE, Family.TIMESTAMP})
_UUID = "uuid"

Identity = tuple[str | None, str]


def short_name(catalog: Catalog, table: Table) -> str:
    """The table's name, with its schema where the name alone can mean several."""
    alone = sum(one.name == table.name for one in catalog.entries) == 1
    return table.name if alone else table.label


@dataclass
class RowOwners:
    """Who owns the rows of each table, as far as it was asked; what is wrong is a UsageError.

    ``home``: the table and column of the ids, None where no table lists the units. ``pending``: the
    tables whose owners are being looked for, each linked to the next.
    """

    catalog: Catalog
    home: tuple[Table, Column] | None
    said: Mapping[Identity, tuple[SaidOwner, ...]]
    found: dict[Identity, tuple[Owner, ...]] = field(default_factory=dict)
    pending: list[Table] = field(default_factory=list)
    ids: tuple[str, ColumnType] | None = None

    def __post_init__(self) -> None:
        self.tables = {table.identity: table for table in self.catalog.tables}
        if self.home is not None:
            self._check_id(*self.home)

    def owners_of(self, table: Table) -> tuple[Owner, ...]:
        """The owners of a private table's rows."""
        if table.identity not in self.found:
            if table in self.pending:
                circle = [one.label for one in self.pending[self.pending.index(table) :]]
                raise UsageError(
                    f"the links of {', '.join(circle)} lead in a circle, not to a unit",
                    hint="name a column that holds the unit's id for one of these tables",
                )
            self.pending.append(table)
            self.found[table.identity] = self._look(table)
            self.pending.pop()
        return self.found[table.identity]

    def _look(self, table: Table) -> tuple[Owner, ...]:
        said = self.said.get(table.identity)
        if self.home is not None and table.identity == self.home[0].identity:
            own = (Owner(self.home[1].name),)
            if said not in (None, (SaidOwner((self.home[1].name,)),)):
                raise UsageError(
                    f"{table.label} lists the units, so that each row owns itself",
                    hint=f"leave out the owners of {table.label}, or name another unit",
                )
            return own
        if said is None:
            return self._through(table, self._only_way(table))
        owners = tuple(owner for one in said for owner in self._said(table, one))
        if len(set(owners)) < len(owners):
            raise UsageError(
                f"the owners of {table.label} are the same", hint="name each owner once"
            )
        return owners

    def _said(self, table: Table, one: SaidOwner) -> tuple[Owner, ...]:
        for name in one.columns:
            _column(table, name)
        if one.table is not None:
            return self._through(table, self._link(table, one, self.catalog.named(one.table)))
        (name,) = one.columns
        self._check_id(table, table.column(name))
        return (Owner(name),)

    def _link(self, table: Table, one: SaidOwner, target: Table) -> Link:
        """The link with the columns of the key, which are taken from the schema if not said."""
        for name in one.key:
            _column(target, name)
        if one.key:
            return Link(one.columns, target.identity, one.key)
        known = [
            link
            for link in table.references
            if link.table == target.identity and link.columns == one.columns
        ]
        if len(known) == 1:
            return known[0]
        keys = {key for key in target.keys if len(key) == len(one.columns)}
        same = frozenset(one.columns)
        if same in keys and len(one.columns) > 1:
            # Two keys of which each column has its own name in common cannot be mixed up.
            return Link(one.columns, target.identity, one.columns)
        if len(keys) == 1 and len(one.columns) == 1:
            return Link(one.columns, target.identity, tuple(next(iter(keys))))
        if not keys:
            raise _no_key(table, one.columns, target)
        written = " or ".join(
            f"{', '.join(one.columns)} -> {one.table}({', '.join(sorted(key))})"
            for key in sorted(keys, key=sorted)
        )
        raise UsageError(
            f"which columns of {target.label} do {', '.join(one.columns)} of {table.label} hold?",
            hint=f"write {written}, in the order that fits",
        )

    def _through(self, table: Table, link: Link) -> tuple[Owner, ...]:
        """The owners of the row that a link leads to, as owners of the row that it comes from."""
        target = self.tables[link.table]
        if own := self._id_in(link):
            self._check_id(table, table.column(own))
            return (Owner(own),)
        if not target.private:
            raise UsageError(
                f"{', '.join(link.columns)} of {table.label} leads to {target.label}, which is "
                "public: its rows have no owner",
                hint=f"name a column of {table.label} that holds the unit's id, or a link to a "
                "private table",
            )
        if not any(key <= frozenset(link.key) for key in target.keys):
            raise _no_key(table, link.columns, target, link.key)
        for here, there in zip(link.columns, link.key, strict=True):
            kind, other = table.column(here).type, target.column(there).type
            if not kind.joins_with(other) or kind.family is Family.OPAQUE:
                raise _apart(f"{table.label}.{here}", kind, f"{target.label}.{there}", other)
        return tuple(Owner(one.column, (link, *one.links)) for one in self.owners_of(target))

    def _id_in(self, link: Link) -> str | None:
        """The column that holds the id, if that is in the linked key: the row names its owner."""
        if self.home is None or link.table != self.home[0].identity:
            return None
        return dict(zip(link.key, link.columns, strict=True)).get(self.home[1].name)

    def _only_way(self, table: Table) -> Link:
        """The one foreign key that leads to an owner."""
        ways = {link: way for link in table.references if (way := self._way(table, link))}
        if len(ways) == 1:
            return next(iter(ways))
        if not ways:
            raise UsageError(
                f"nobody owns the rows of {table.label}, which is private",
                hint=f"declare it public or say who owns its rows: --owner {table.name}=COLUMN, "
                f"--owner {table.name}=COLUMN->TABLE",
            )
        texts = [" -> ".join([", ".join(link.columns), *way]) for link, way in ways.items()]
        hints = [
            f"--owner '{table.name}={','.join(link.columns)}->{self._name(link.table)}'"
            for link in ways
        ]
        raise UsageError(
            f"the rows of {table.label} can be owned in several ways: {'; '.join(sorted(texts))}",
            hint=f"say which: {' or '.join(sorted(hints))}; or both, if both own a row",
        )

    def _way(self, start: Table, link: Link) -> tuple[str, ...]:
        """The tables from a link on to one with an owner, not through the start; none: ()."""
        ways: dict[Identity, tuple[str, ...]] = {link.table: (self._name(link.table),)}
        if self._id_in(link):
            return ways[link.table]
        pending = [link.table]
        for place in pending:
            table = self.tables[place]
            if place == start.identity or not table.private:
                continue
            if place in self.said or (self.home and place == self.home[0].identity):
                return ways[place]
            for further in table.references:
                way = (*ways[place], self._name(further.table))
                if self._id_in(further):
                    return way
                if further.table not in ways:
                    ways[further.table] = way
                    pending.append(further.table)
        return ()

    def _name(self, identity: Identity) -> str:
        return short_name(self.catalog, self.tables[identity])

    def _check_id(self, table: Table, column: Column) -> None:
        kind, about = column.type, values_of(column.type)
        uuid = kind.family is Family.OTHER and kind.name.lower() == _UUID
        if not uuid and (kind.family not in _IDS or about.nan or about.collated):
            raise UsageError(
                f"{table.label}.{column.name} cannot hold ids of units: its type is {kind.name}"
                + (f" with the collation {kind.collation}" if about.collated else ""),
                hint="ids are whole numbers, exact decimals without NaN, texts without a collation "
                "of their own, dates, timestamps without a zone, or UUIDs",
            )
        name = f"{table.label}.{column.name}"
        self.ids = self.ids or (name, kind)
        if not kind.joins_with(self.ids[1]):
            raise _apart(name, kind, *self.ids)


def _column(table: Table, name: str) -> Column:
    for column in table.columns:
        if column.name == name:
            return column
    names = ", ".join(column.name for column in table.columns)
    raise UsageError(f"{table.label} has no column {name}", hint=f"it has {names}")


def _no_key(
    table: Table, columns: Sequence[str], target: Table, held: Sequence[str] = ()
) -> UsageError:
    known = "; ".join(f"({', '.join(sorted(key))})" for key in sorted(target.keys, key=sorted))
    what = f"({', '.join(held)})" if held else "what it holds"
    return UsageError(
        f"{', '.join(columns)} of {table.label} cannot be a link: "
        f"{what} is not a key of {target.label}, so that a row could have several owners",
        hint=f"{target.label} has {f'the keys {known}' if known else 'no key'}; declare one that "
        f"holds: --key {target.name}=COLUMN",
    )


def _apart(name: str, kind: ColumnType, other_name: str, other: ColumnType) -> UsageError:
    return UsageError(
        f"{name} does not compare with {other_name}: their types are {kind.name} and {other.name}",
        hint="an id has one type, and one collation, in all tables",
    )
