"""Classes of ``sqlrs.records`` do what those of the standard library do: both are tried."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading
from collections.abc import Callable, Hashable
from dataclasses import field
from types import SimpleNamespace
from typing import Any

import pytest

from sqlrs import records

Decorator = Callable[..., Any]


def a_family(dataclass: Decorator) -> SimpleNamespace:
    """The same declarations under one decorator or the other."""

    @dataclass
    class Plain:
        """Fields that can be set."""

        a: int
        b: list[int] = field(default_factory=list)
        c: str = "c"

    @dataclass(frozen=True)
    class Frozen:
        """A default, a field that is not compared, one that is not shown."""

        a: object
        b: object = 2
        hidden: object = field(default=3, repr=False)
        beside: object = field(default=4, compare=False)
        unhashed: object = field(default=5, hash=False)

    @dataclass(frozen=True)
    class Derived(Frozen):
        """A field more, and another default."""

        b: object = 20
        more: object = field(default_factory=lambda: (1,))

    class Undeclared(Frozen):
        """A subclass that sets what is no field."""

    @dataclass(frozen=True)
    class Checked:
        """Looks at its fields, and sets one that nobody gives."""

        a: int
        double: int = field(init=False)

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("below zero")
            object.__setattr__(self, "double", 2 * self.a)

    @dataclass(frozen=True, kw_only=True)
    class ByName:
        """Fields that are given by name."""

        a: int
        b: int = 1

    @dataclass(frozen=True, order=True)
    class Ordered:
        """One field."""

        a: int

    @dataclass(frozen=True, eq=False)
    class Identical:
        """Compared by identity."""

        a: int

    @dataclass(frozen=True, repr=False)
    class Unshown:
        """Private."""

        a: int

    @dataclass(frozen=True)
    class OwnEquality:
        """Says itself how it is compared and shown."""

        a: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, OwnEquality)

        def __repr__(self) -> str:
            return "own"

    @dataclass(frozen=True)
    class OwnHash:
        """Says itself how it is hashed."""

        a: int

        def __hash__(self) -> int:
            return 7

    @dataclass
    class OwnMaking:
        """Makes itself."""

        a: int

        def __init__(self) -> None:
            self.a = 9

    @dataclass
    class Empty:
        """Nothing."""

    return SimpleNamespace(**{k: v for k, v in locals().items() if isinstance(v, type)})


def with_value(one: Any, name: str) -> Any:
    setattr(one, name, 5)
    return one


OURS, THEIRS = a_family(records.dataclass), a_family(dataclasses.dataclass)

MAKING: list[Callable[[SimpleNamespace], Any]] = [
    lambda family: family.Plain(1),
    lambda family: family.Plain(1, [2], c="d"),
    lambda family: family.Plain(b=[], a=2),
    lambda family: family.Plain(),
    lambda family: family.Plain(1, 2, 3, 4),
    lambda family: family.Plain(1, e=4),
    lambda family: family.Frozen(1),
    lambda family: family.Frozen((1, 2), None, beside=5),
    lambda family: family.Frozen([1]),
    lambda family: family.Derived(1),
    lambda family: family.Derived(1, 2, more=()),
    lambda family: family.Undeclared(1),
    lambda family: family.Checked(3),
    lambda family: family.Checked(-3),
    lambda family: family.ByName(a=1),
    lambda family: family.ByName(1),
    lambda family: family.Ordered(1),
    lambda family: family.Ordered(2),
    lambda family: family.Identical(1),
    lambda family: family.OwnEquality(1),
    lambda family: family.OwnHash(1),
    lambda family: family.OwnMaking(),
    lambda family: family.Empty(),
]
DOING: list[Callable[[Any], Any]] = [
    lambda one: repr(one).replace(type(one).__qualname__, type(one).__name__),
    lambda one: hash(one) if type(one).__name__ != "Identical" else isinstance(one, Hashable),
    lambda one: one == copy.copy(one),
    lambda one: one != copy.deepcopy(one),
    lambda one: one == 1,
    lambda one: one.__eq__(1),
    lambda one: one < copy.copy(one),
    lambda one: one <= copy.copy(one),
    lambda one: one > 1,
    lambda one: with_value(one, "a").a,
    lambda one: with_value(one, "new").new,
    lambda one: delattr(one, "a"),
    lambda one: dataclasses.replace(one, a=8).a,
    lambda one: dataclasses.asdict(one),
    lambda one: [given.name for given in dataclasses.fields(one)],
    lambda one: type(one).__match_args__,
    lambda one: vars(one),
    lambda one: type(one).__doc__,
    lambda one: one == dataclasses.replace(one, a=(1, 2)),
    lambda one: one == dataclasses.replace(one, beside=9),
    lambda one: hash(one) == hash(dataclasses.replace(one, unhashed=9)),
]


def outcome(work: Callable[..., Any], *given: object) -> object:
    """What comes out, or which error with which words."""
    try:
        return work(*given)
    except Exception as error:
        return type(error), str(error).replace("a_family.<locals>.", "").replace("_self", "self")


@pytest.mark.parametrize("make", MAKING)
def test_objects_behave_alike(make: Callable[[SimpleNamespace], Any]) -> None:
    ours, theirs = outcome(make, OURS), outcome(make, THEIRS)
    if isinstance(theirs, tuple):
        assert ours == theirs
        return
    for do in DOING:
        assert outcome(do, make(OURS)) == outcome(do, make(THEIRS))


def test_the_comparison_can_fail() -> None:
    differ = [outcome(do, OURS.Derived(1)) != outcome(do, THEIRS.Frozen(1)) for do in DOING]
    assert sum(differ) > 3


def test_order_and_equality_between_objects() -> None:
    for family in (OURS, THEIRS):
        low, high = family.Ordered(1), family.Ordered(2)
        assert low < high and high >= low and sorted([high, low]) == [low, high]
        assert family.Frozen(1) != family.Derived(1, 2)
        assert {family.Frozen(1): 1}[family.Frozen(1)] == 1
        with pytest.raises(TypeError):
            assert low < 3


def test_an_object_that_holds_itself_is_shown() -> None:
    for family in (OURS, THEIRS):
        one = family.Plain(1)
        one.b.append(one)
        assert repr(one).endswith("Plain(a=1, b=[...], c='c')")


@records.dataclass(frozen=True)
class Sent:
    """At the top level, so that it can be pickled."""

    a: int
    b: tuple[int, ...] = ()


def test_an_object_is_pickled_and_matched() -> None:
    sent = pickle.loads(pickle.dumps(Sent(1, (2,))))
    match sent:
        case Sent(a, (b,)):
            assert (a, b) == (1, 2)
        case _:
            raise AssertionError
    assert sent == Sent(1, (2,)) and hash(sent) == hash(Sent(1, (2,)))


def test_first_objects_are_made_in_many_threads() -> None:
    for _ in range(20):
        made: list[Any] = []
        family = a_family(records.dataclass)
        start = threading.Barrier(8)

        def make(family: Any = family, made: Any = made, start: Any = start) -> None:
            start.wait()
            made.append(family.Derived(1))

        threads = [threading.Thread(target=make) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [family.Derived(1)] * 8
