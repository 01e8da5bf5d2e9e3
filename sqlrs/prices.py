"""What is known of the price and the error of an answer without spending anything."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from sqlrs.before_charge import Ready, dry_run
from sqlrs.compiled import Compiled, CompiledStatement, compiled_text
from sqlrs.compiler.simplify import Contradiction
from sqlrs.errors import QueryRefused
from sqlrs.mechanisms.wished_vector import WishedCut, WishedVector
from sqlrs.noise.published_scale import SHAPES, PublishedScale, published_scale
from sqlrs.records import dataclass
from sqlrs.settings import Request, Wish
from sqlrs.wished_release import public_sensitivity, scale_charge
from sqlrs.wished_steps import WishDesk, index_of
from sqlrs.wished_table import PublicWidth, look_charge, way_of

_SHOWN = (Decimal("0.01"), Decimal("0.1"), Decimal(1))


@dataclass(frozen=True)
class Width:
    """Half the width of the 95 % interval at a price: a number, or times the sensitivity."""

    epsilon: Decimal
    half_width: float

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:f}: ± {self.half_width:.4g}"


@dataclass(frozen=True)
class Prices:
    """What a question would cost. ``epsilon``: of the wished error, None where nobody knows.

    ``sensitivity``: where it is public. ``widths`` are multiples of the sensitivity unless it is
    public or an earlier question released the ``scale``; ``look`` is the price of that scale.
    """

    said: str
    epsilon: Decimal | None = None
    sensitivity: Fraction | None = None
    widths: tuple[Width, ...] = ()
    look: Decimal | None = None
    scale: int | None = None

    def __str__(self) -> str:
        return "\n".join([self.said, *(f"  {width}" for width in self.widths)])


def prices_of(request: Request, wish: Wish, desk: WishDesk, *, wished: bool) -> Prices:
    """The price of an answer, from the schema, public tables and what was released before."""
    compiled = compiled_text(request.sql, desk.catalog, desk.settings, as_rows=request.as_rows)
    if isinstance(compiled, CompiledStatement):
        return _of_statement(request, wish, desk, wished)
    if isinstance(compiled, Contradiction) or not compiled.residuals.query.private:
        return Prices("exact and free: no private row takes part", Decimal(0), Fraction(0))
    fixed = public_sensitivity(request, compiled, desk)
    if fixed is not None:
        return _of_public(PublicWidth(fixed, Fraction(1)), wish, wished)
    return _of_private(request, compiled, wish, desk, wished)


def _of_public(width: PublicWidth, wish: Wish, wished: bool) -> Prices:
    """Laplace noise of a public width."""
    found = width.least(wish) if wished else None
    prices = [wish.maximum] if wished else [one for one in _SHOWN if one < wish.maximum]
    prices = sorted({*prices, wish.maximum, *([found] if found is not None else [])})
    widths = tuple(Width(one, float(width.half_width(one))) for one in prices)
    moved = width.moved * width.unit
    said = (
        f"laplace noise of a public width: one change moves the answer by {float(moved):g} at "
        "most, by the query and public tables alone"
    )
    if wished:
        said += f"\n{_verdict(wish, found)}"
    return Prices(f"{said}\nhalf the 95 % interval", found, moved, widths)


def _of_private(
    request: Request, compiled: Compiled, wish: Wish, desk: WishDesk, wished: bool
) -> Prices:
    """Polylaplace noise whose scale is private; known if an earlier question released it."""
    scale = published_scale(wish.maximum)
    recorded = desk.ledger.repeat(scale_charge(request, compiled, scale))
    if recorded is None:
        said = (
            "polylaplace noise in proportion to a private sensitivity; with --error and "
            f"--max-epsilon {wish.maximum:f} an estimate of its scale costs epsilon "
            f"{scale.epsilon:f}, and the answer one of the prices below\n"
            "half the 95 % interval, as a multiple of the sensitivity"
        )
        return Prices(said, None, None, _multiples(scale), scale.epsilon)
    index = index_of(recorded)
    shape = scale.least_shape(index, wish.half_width) if wished else None
    found = None if shape is None else scale.laws[shape].epsilon
    said = (
        "polylaplace noise; an earlier question released the scale, which is not charged again "
        f"with --error and --max-epsilon {wish.maximum:f}"
    )
    if wished:
        said += f"\n{_verdict(wish, found)}"
    widths = tuple(Width(scale.laws[a].epsilon, float(scale.half_width(index, a))) for a in SHAPES)
    return Prices(f"{said}\nhalf the 95 % interval", found, None, widths, Decimal(0), index)


def _multiples(scale: PublishedScale) -> tuple[Width, ...]:
    return tuple(
        Width(scale.laws[a].epsilon, float(scale.multiple_of(a) * scale.scale(Fraction(1))))
        for a in SHAPES
    )


def _of_statement(request: Request, wish: Wish, desk: WishDesk, wished: bool) -> Prices:
    with dry_run(request, desk.engine, desk.catalog, desk.settings) as ready:
        ready.above.database.close()
        try:
            way = way_of(request, wish, desk, ready)
        except QueryRefused as refused:
            described: Sequence[str] = [one.describe() for one in ready.mechanisms.values()]
            return Prices(
                "\n".join(
                    [
                        f"{refused.message}; with --epsilon {request.epsilon}:",
                        *dict.fromkeys(described),
                    ]
                )
            )
        if isinstance(way, WishedVector):
            return _of_two_steps(request, wish, desk, wished, way, ready)
    if way is None or not way.moved:
        return Prices("exact and free: no private row takes part", Decimal(0), Fraction(0))
    return _of_public(way, wish, wished)


def _of_two_steps(
    request: Request, wish: Wish, desk: WishDesk, wished: bool, vector: WishedVector, ready: Ready
) -> Prices:
    """A threshold or a scale makes the width public; known if an earlier question released it."""
    cuts = isinstance(vector, WishedCut)
    what = "threshold" if cuts else "sensitivity"
    asked = f"with --error and --max-epsilon {wish.maximum:f}"
    recorded = desk.ledger.repeat(look_charge(request, vector, ready))
    if recorded is None:
        told = "the choice of a threshold" if cuts else "an estimate of its scale"
        said = (
            f"noise in proportion to a private {what}; {asked} {told} costs epsilon "
            f"{vector.look:f}, and the answer one of the prices below\n"
            f"half the 95 % interval, as a multiple of the {what}"
        )
        return Prices(said, None, None, _widths(vector, None), vector.look)
    index = index_of(recorded)
    ((unit,),) = [{asked[1].unit for asked, one in ready.mechanisms.items() if sum(one.prices)}]
    best = vector.least(index, wish.half_width / unit) if wished else None
    found = None if best is None else best.epsilon
    said = f"an earlier question released the {what}, which is not charged again {asked}"
    if wished:
        said += f"\n{_verdict(wish, found)}"
    widths = _widths(vector, index)
    return Prices(f"{said}\nhalf the 95 % interval", found, None, widths, Decimal(0), index)


def _widths(vector: WishedVector, index: int | None) -> tuple[Width, ...]:
    return tuple(Width(price, half) for price, half in vector.widths(index))


def _verdict(wish: Wish, found: Decimal | None) -> str:
    if found is None:
        return f"an error of at most {wish.error} needs more than epsilon {wish.maximum:f}"
    return f"an error of at most {wish.error} costs epsilon {found:f}"
