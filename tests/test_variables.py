"""Variables are the same by name, as values, in collections and in other processes."""

from __future__ import annotations

import pickle
from copy import deepcopy
from dataclasses import FrozenInstanceError

import pytest

from sqlrs.catalog import ColumnType, Family
from sqlrs.query import Constant, Term, Variable

NUMBER, TEXT = ColumnType(Family.INTEGER, "BIGINT"), ColumnType(Family.TEXT, "VARCHAR")


def test_the_same_by_name() -> None:
    one, same, other = Variable("b", NUMBER), Variable("b", TEXT), Variable("a", NUMBER)
    assert one == same and hash(one) == hash(same) and {one: 1}[same] == 1
    assert sorted([one, other]) == [other, one]
    assert str(one) == f"{one}" == one.name == "b"


def test_a_name_or_a_constant_is_no_variable() -> None:
    variable: Term = Variable("b", TEXT)
    assert variable not in ["b", ("c",)]
    assert variable != Constant("b", TEXT)


def test_copies_keep_the_type() -> None:
    for copied in (pickle.loads(pickle.dumps(Variable("b", TEXT))), deepcopy(Variable("b", TEXT))):
        assert copied == Variable("b", TEXT) and copied.type == TEXT


def test_nothing_is_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Variable("b", TEXT).type = NUMBER
