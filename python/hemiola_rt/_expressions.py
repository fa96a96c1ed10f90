"""Expressions of plan files: numbers, or text in `rank`, `i` and `j` with + - * % and parentheses (docs/plan_files.md)."""

import ast
import operator

_OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Mod: operator.mod, ast.USub: operator.neg}


def evaluate(expression, rank, counters=()):
    """Its value for a rank and the counters of the loops around it, outermost first. ValueError: it is no such expression."""
    if isinstance(expression, int):
        return expression
    names = {"rank": rank, **dict(zip("ij", counters))}
    return _value(ast.parse(str(expression), mode="eval").body, names, expression)


def _value(node, names, whole):
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.left, names, whole), _value(node.right, names, whole))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.operand, names, whole))
    raise ValueError(f"'{whole}' is no expression of a plan in {', '.join(names)}")
