"""Data classes that are cheap to declare: what they do is shared, or written when it is needed.

The standard library writes and compiles six methods for every frozen class while its module is
imported: a quarter of the time of a small count, which imports 170 such classes and makes objects
of few. Here comparing, hashing, printing and freezing are functions over the fields, and
``__init__`` is compiled when the first object is made. Fields, ``replace``, patterns and
inheritance are the standard library's, and every method does what its own would do.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter, ge, gt, le, lt
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # To who checks types it is the standard library's.
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """Declare a class by its fields, with the options of the standard library below."""
        return _declared(cls) if cls is not None else lambda own: _declared(own, **options)


def _declared(
    cls: type,
    *,
    frozen: bool = False,
    eq: bool = True,
    order: bool = False,
    repr: bool = True,
    kw_only: bool = False,
) -> type:
    own = vars(cls)
    # Where a class says how it is compared, Python itself says that it cannot be hashed.
    keeps_hash = "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)
    kept = {*own} if keeps_hash else {*own} - {"__hash__"}
    dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
    fields = dataclasses.fields(cls)
    methods: dict[str, Any] = {"__init__": _first_making(cls, frozen)}
    if repr:
        methods["__repr__"] = _printing([field.name for field in fields if field.repr])
    if eq:
        methods |= _comparing(fields, frozen)
    if order:
        methods |= _ordering(fields)
    if frozen:
        methods |= _freezing(cls, frozenset(field.name for field in fields))
    for name, method in methods.items():
        if name not in kept:
            setattr(cls, name, method)
    return cls


def _first_making(cls: type, frozen: bool) -> Callable[..., None]:
    """An ``__init__`` that puts the compiled one in its place."""

    def __init__(self: Any, *args: Any, **named: Any) -> None:
        made = _making(cls, frozen)
        cls.__init__ = made  # type: ignore[misc]
        made(self, *args, **named)

    return __init__


def _making(cls: type, frozen: bool) -> Callable[..., None]:
    """``__init__``, compiled: a parameter for each field, those that need their names last."""
    fields = dataclasses.fields(cls)
    known: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
    by_place = [_parameter(field, known) for field in fields if field.init and not field.kw_only]
    by_name = [_parameter(field, known) for field in fields if field.init and field.kw_only]
    lines = [line for field in fields if (line := _setting(field, frozen, known))]
    if hasattr(cls, "__post_init__"):
        lines.append("_self.__post_init__()")
    parameters = ", ".join(["_self", *by_place, *(["*", *by_name] if by_name else [])])
    body = "\n".join(f"    {line}" for line in lines or ["pass"])
    exec(f"def __init__({parameters}):\n{body}", known)
    made: Callable[..., None] = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _parameter(field: Field[Any], known: dict[str, Any]) -> str:
    if field.default is not MISSING:
        known[f"_default_{field.name}"] = field.default
        return f"{field.name}=_default_{field.name}"
    return field.name if field.default_factory is MISSING else f"{field.name}=_missing"


def _setting(field: Field[Any], frozen: bool, known: dict[str, Any]) -> str | None:
    """The line that sets a field; none where the class's own default is seen, or nothing is."""
    value = field.name
    if field.default_factory is not MISSING:
        known[f"_make_{field.name}"] = field.default_factory
        value = f"_make_{field.name}()"
        if field.init:
            value += f" if {field.name} is _missing else {field.name}"
    elif not field.init:
        return None
    if frozen:
        return f"_set(_self, {field.name!r}, {value})"
    return f"_self.{field.name} = {value}"


def _printing(names: Sequence[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({values})"

    return __repr__


def _comparing(fields: Sequence[Field[Any]], frozen: bool) -> dict[str, Any]:
    compared = _values([field.name for field in fields if field.compare])

    def __eq__(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return compared(self) == compared(other)

    if not frozen:
        return {"__eq__": __eq__, "__hash__": None}
    hashed = _values(
        [one.name for one in fields if (one.compare if one.hash is None else one.hash)]
    )

    def __hash__(self: Any) -> int:
        return hash(hashed(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _ordering(fields: Sequence[Field[Any]]) -> dict[str, Any]:
    compared = _values([field.name for field in fields if field.compare])

    def by(decides: Callable[[Any, Any], bool]) -> Callable[[Any, object], Any]:
        def compare(self: Any, other: object) -> Any:
            if other.__class__ is not self.__class__:
                return NotImplemented
            return decides(compared(self), compared(other))

        return compare

    return {"__lt__": by(lt), "__le__": by(le), "__gt__": by(gt), "__ge__": by(ge)}


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What reads the fields of an object as a tuple."""
    if not names:
        return lambda self: ()
    read = attrgetter(*names)
    return read if len(names) > 1 else lambda self: (read(self),)


def _freezing(cls: type[Any], names: frozenset[str]) -> dict[str, Any]:
    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}
