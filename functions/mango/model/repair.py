"""Which edit may repair a Python module, judged by its source and by the tests that failed.

Only operators are considered: another arithmetic operator, or a comparison that is strict and should not be, or the
other way round. The numbers that a test printed tell how likely each is; a new run of the tests decides.
"""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mango.model.unittest_output import Failure

_ARITHMETIC: dict[type[ast.operator], tuple[str, Callable[[int, int], int]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Lt: "<",
    ast.LtE: "<=",
}
_STRICTNESS = {">": ">=", ">=": ">", "<": "<=", "<=": "<"}
_DIRECTION = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
_LIKELY = {("+", "*"), ("*", "+"), ("-", "+")}
_PAIR = re.compile(r"[(\[]\s*(-?\d[\d_]*)\s*,\s*(-?\d[\d_]*)\s*[)\]]")
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d_]*(?![\w.])")


@dataclass(frozen=True, slots=True)
class Repair:
    """One possible edit. The strings are whole lines, enough of them to occur once in the file."""

    old_string: str
    new_string: str
    function: str
    was: str
    becomes: str
    failure: Failure
    score: int


@dataclass(frozen=True, slots=True)
class _Place:
    """An operator in the source: `start` and `end` are its bytes, `whole` the expression's."""

    function: str
    start: int
    end: int
    whole: tuple[int, int]
    constants: frozenset[int]


def repairs(source: str, failures: Sequence[Failure]) -> list[Repair]:
    """Possible repairs, the likeliest first; none if the source cannot be read as Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    calls = {name: _called(node) & functions.keys() for name, node in functions.items()}
    found: dict[tuple[str, str], Repair] = {}
    for failure in failures:
        for name in _suspects(failure, functions, calls):
            for repair in _of_function(source, tree, functions[name], failure):
                key = (repair.old_string, repair.new_string)
                if key not in found or found[key].score < repair.score:
                    found[key] = repair
    # What others call is looked at first: their results are wrong because its are.
    depths = {name: len(_reach(name, calls)) for name in calls}
    return sorted(found.values(), key=lambda repair: (-repair.score, depths[repair.function]))


def _called(node: ast.AST) -> set[str]:
    return {n.func.id for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)} | {
        n.func.attr for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
    }


def _reach(name: str, calls: dict[str, set[str]]) -> set[str]:
    reached, ahead = {name}, [name]
    while ahead:
        ahead += (new := calls[ahead.pop()] - reached)
        reached |= new
    return reached


def _suspects(failure: Failure, functions: dict[str, ast.FunctionDef], calls: dict[str, set[str]]) -> list[str]:
    """Functions that the failing line calls or the traceback names, and all that these call; else guesses."""
    source = " ".join(line for *_, line in failure.frames)
    entered = {function for _, _, function, _ in failure.frames}
    named = [name for name in functions if name in entered or re.search(rf"\b{re.escape(name)}\s*\(", source)]
    named = named or [name for name in functions if name in failure.test] or list(functions)
    return list(dict.fromkeys(reached for name in named for reached in sorted(_reach(name, calls))))


def _of_function(source: str, tree: ast.Module, function: ast.FunctionDef, failure: Failure) -> Iterator[Repair]:
    text = source.encode()
    constants = _constants(tree) | _constants(function)
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            for place, old in _operators(text, function.name, node, [node.left, node.right], constants):
                for new, _ in _ARITHMETIC.values():
                    if new != old:
                        yield _repair(text, place, new, failure, _arithmetic_score(old, new, failure))
        elif isinstance(node, ast.Compare):
            for place, old in _operators(text, function.name, node, [node.left, *node.comparators], constants):
                if old in _STRICTNESS:
                    seen = _numbers(failure) & place.constants
                    yield _repair(text, place, _STRICTNESS[old], failure, 3 if seen else 1)
                    yield _repair(text, place, _DIRECTION[old], failure, 0)


def _constants(node: ast.AST) -> dict[str, int]:
    """Names that are given a whole number once and for all, and the default values of parameters."""
    found: dict[str, int] = {}
    for statement in getattr(node, "body", []):
        if isinstance(statement, ast.Assign | ast.AnnAssign) and (number := _integer(statement.value)) is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            found.update({target.id: number for target in targets if isinstance(target, ast.Name)})
    if isinstance(node, ast.FunctionDef):
        arguments = [*node.args.posonlyargs, *node.args.args]
        pairs = list(zip(reversed(arguments), reversed(node.args.defaults), strict=False))
        for argument, default in [*pairs, *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]:
            if (number := _integer(default)) is not None:
                found[argument.arg] = number
    return found


def _integer(node: ast.AST | None) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _operators(
    text: bytes, function: str, node: ast.expr, operands: list[ast.expr], constants: dict[str, int]
) -> Iterator[tuple[_Place, str]]:
    """Where the operators between these operands stand, and which they are."""
    for left, right in itertools.pairwise(operands):
        begin, end = _offset(text, left, end=True), _offset(text, right)
        # Between two operands are the operator, brackets, white space and comments.
        if match := re.search(rb"\*\*|//|>=|<=|[-+*<>]", re.sub(rb"#.*", lambda m: b" " * len(m[0]), text[begin:end])):
            values = {_integer(side) for side in (left, right)}
            values |= {constants.get(side.id) for side in (left, right) if isinstance(side, ast.Name)}
            numbers = frozenset(value for value in values if value is not None)
            whole = (_offset(text, node), _offset(text, node, end=True))
            yield _Place(function, begin + match.start(), begin + match.end(), whole, numbers), match[0].decode()


def _offset(text: bytes, node: ast.expr, end: bool = False) -> int:
    line, column = (node.end_lineno or node.lineno, node.end_col_offset or 0) if end else (node.lineno, node.col_offset)
    return sum(len(each) for each in text.splitlines(keepends=True)[: line - 1]) + column


def _arithmetic_score(old: str, new: str, failure: Failure) -> int:
    """4 when the old operator explains the number that came out and the new one the number that was expected."""
    pairs = [(_int(a), _int(b)) for a, b in _PAIR.findall(_words(failure))]
    if pairs and failure.got is not None:
        compute = dict(_ARITHMETIC.values())
        numbers = {sum(compute[sign](a, b) for a, b in pairs) for sign in (old, new)}
        if len(numbers) == 2 and numbers == {failure.got, failure.expected}:
            return 4
    return 1 if (old, new) in _LIKELY else 0


def _words(failure: Failure) -> str:
    return " ".join([*(line for *_, line in failure.frames), failure.parameters])


def _numbers(failure: Failure) -> set[int]:
    return {_int(number) for number in _NUMBER.findall(_words(failure))}


def _int(text: str) -> int:
    return int(text.replace("_", ""))


def _repair(text: bytes, place: _Place, new: str, failure: Failure, score: int) -> Repair:
    begin = text.rfind(b"\n", 0, place.start) + 1
    end = text.find(b"\n", place.end)
    end = len(text) if end < 0 else end
    while begin and text.count(text[begin:end]) > 1:
        begin = text.rfind(b"\n", 0, begin - 1) + 1  # one line more, until it is the only such place

    def cut(first: int, last: int) -> tuple[str, str]:
        head, tail = text[first : place.start].decode(), text[place.end : last].decode()
        return f"{head}{text[place.start : place.end].decode()}{tail}", f"{head}{new}{tail}"

    was, becomes = (" ".join(words.split()) for words in cut(*place.whole))
    old_string, new_string = cut(begin, end)
    return Repair(old_string, new_string, place.function, was, becomes, failure, score)
