"""Expressions in the rank and the counters of loops: what peers, chunks and numbers of transfers are.

value = (sum of variables times numbers) % modulus * scale + offset, as docs/plan_files.md has it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Union

VARIABLES = ("rank", "i", "j")


@dataclass(frozen=True)
class Expression:
    """Made of :data:`hemiola.rank`, loop counters and numbers with ``+ - * %``; at most one ``%`` by a number."""

    constant: int = 0
    factors: tuple[int, int, int] = (0, 0, 0)  #: of rank, i and j
    modulus: int = 0
    scale: int = 1  #: after the modulus
    offset: int = 0

    @property
    def is_number(self) -> bool:
        return self.modulus == 0 and not any(self.factors)

    def __add__(self, other: "Number") -> "Expression":
        right = expression(other)
        if self.modulus and not right.is_number or right.modulus and not self.is_number:
            raise ValueError("a '%' can only be added to a number")
        if right.modulus:
            return right + self
        if self.modulus:
            return replace(self, offset=self.offset + right.constant)
        factors = tuple(a + b for a, b in zip(self.factors, right.factors))
        return Expression(self.constant + right.constant, factors)  # type: ignore[arg-type]

    def __mul__(self, factor: int) -> "Expression":
        if isinstance(factor, Expression) and factor.is_number:
            factor = factor.constant
        if not isinstance(factor, int):
            raise TypeError("an expression is multiplied with a number")
        if self.modulus:
            return replace(self, scale=self.scale * factor, offset=self.offset * factor)
        return Expression(self.constant * factor, tuple(f * factor for f in self.factors))  # type: ignore[arg-type]

    def __mod__(self, modulus: int) -> "Expression":
        if not isinstance(modulus, int) or modulus < 1:
            raise ValueError("'%' needs a number of at least 1")
        if self.modulus:
            raise ValueError("an expression has one '%'")
        return replace(self, modulus=modulus)

    def __radd__(self, other: int) -> "Expression":
        return self + other

    def __rmul__(self, factor: int) -> "Expression":
        return self * factor

    def __neg__(self) -> "Expression":
        return self * -1

    def __sub__(self, other: "Number") -> "Expression":
        return self + expression(other) * -1

    def __rsub__(self, other: int) -> "Expression":
        return self * -1 + other

    def minus(self, other: "Expression") -> int:
        """The difference of two that differ by a number only."""
        if (self.factors, self.modulus, self.scale) == (other.factors, other.modulus, other.scale):
            if not self.modulus:
                return self.constant - other.constant
            if self.constant == other.constant:
                return self.offset - other.offset
        raise ValueError(f"from '{other}' to '{self}' is no fixed number of elements: write tensor[begin : begin + count]")

    def __str__(self) -> str:
        terms = [f"{factor} * {name}" for factor, name in zip(self.factors, VARIABLES) if factor]
        text = " + ".join(terms + ([str(self.constant)] if self.constant or not terms else []))
        if self.modulus:
            text = f"({text}) % {self.modulus} * {self.scale} + {self.offset}"
        return text.replace("+ -", "- ")

    def json(self) -> Union[int, str]:
        return self.constant if self.is_number else str(self)


Number = Union[int, Expression]

rank = Expression(factors=(1, 0, 0))  #: the rank that runs the code


def counter(depth: int) -> Expression:
    """Of the loop at this depth, 0 the outermost."""
    return Expression(factors=(0, 1, 0) if depth == 0 else (0, 0, 1))


def expression(value: Number) -> Expression:
    if isinstance(value, Expression):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is neither a number nor made of rank and loop counters")
    return Expression(value)
