"""Which names are bound where in a program, as far as it can be told without running it.

A name counts as bound at a place if every way that leads there has bound it: by an argument, an earlier assignment or
import, a global of the module, or Python itself. Bodies of functions run later, so they see all globals and all
variables of the functions around them. What a loop or only one branch binds does not count after it.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from evolvent.search.normal import COMPREHENSIONS, DEFINED, ELSEWHERE, IMPORTS, NAMING, children, walk

BUILTINS = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__"}

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue)
Place = tuple[int, int]  # line from 1, column from 0 in UTF-8 bytes, as ast counts
Bound = frozenset[str]


@dataclass(frozen=True)
class Stretch:
    """A statement, lambda or comprehension: where it is, what is bound in it and after it (None: nothing runs there),
    and the functions and classes around it, outermost first."""

    start: Place
    end: Place
    inside: Bound
    after: Bound | None
    around: tuple[str, ...]


class Names:
    """The names of a program, or of a part of one that stands where the names `given` are bound. Raises SyntaxError."""

    def __init__(self, source: str, given: Bound = BUILTINS) -> None:
        tree = ast.parse(source)
        self._binds_inside = False
        self.stretches: list[Stretch] = []
        self.unbound: Counter[str] = Counter()  # names used where they are not bound, with how often
        self.imported: set[str] = set()
        self.functions: set[str] = set()
        for node in walk(tree):
            if isinstance(node, DEFINED):
                self.functions.add(node.name)
            elif isinstance(node, ast.NamedExpr):
                self._binds_inside = True
            else:
                self.imported.update(_imported(node))
        self._globals = frozenset(_locals(tree.body))
        self._block(tree.body, given, (), given)

    def statement(self, place: Place) -> Stretch | None:
        """The statement that starts at a place."""
        found = [s for s in self.stretches if s.start == place]
        return max(found, key=lambda s: s.end) if found else None

    def at(self, place: Place) -> Stretch | None:
        """The innermost stretch around a place."""
        found = [s for s in self.stretches if s.start <= place < s.end]
        return max(found, key=lambda s: (s.start, _negative(s.end))) if found else None

    def _block(self, body: Sequence[ast.stmt], bound: Bound, around: tuple[str, ...], outer: Bound) -> Bound | None:
        """Walks statements; gives what is bound after them, None if nothing runs there.

        `outer` is what the body of a function that is defined here sees of its surroundings.
        """
        now: Bound | None = bound
        for statement in body:
            before = now if now is not None else bound
            after = self._statement(statement, before, around, outer)
            self._stretch(statement, before, after, around)
            now = after if now is not None else None
        return now

    def _statement(self, s: ast.stmt, bound: Bound, around: tuple[str, ...], outer: Bound) -> Bound | None:
        def block(body: Sequence[ast.stmt], names: Bound) -> Bound | None:
            return self._block(body, names, around, outer)

        if isinstance(s, FUNCTIONS):
            self._uses([*s.decorator_list, *s.args.defaults, *filter(None, s.args.kw_defaults)], bound, around)
            arguments = {a.arg for a in _arguments(s.args)}
            local = _locals(s.body)
            seen = (outer | (self._globals if not around else frozenset())) - local | arguments
            self._block(s.body, seen, (*around, s.name), seen | local)
            return bound | {s.name}
        if isinstance(s, ast.ClassDef):
            self._uses([*s.decorator_list, *s.bases, *s.keywords], bound, around)
            self._block(s.body, bound, (*around, s.name), outer | (self._globals if not around else frozenset()))
            return bound | {s.name}
        if isinstance(s, ast.For | ast.AsyncFor):
            self._uses([s.iter], bound, around)
            block(s.body, bound | _locals([s.target]))
            block(s.orelse, bound)
            return bound
        if isinstance(s, ast.While):
            self._uses([s.test], bound, around)
            block(s.body, bound | _locals([s.test]))
            block(s.orelse, bound)
            return bound
        if isinstance(s, ast.If):
            self._uses([s.test], bound, around)
            bound = bound | _locals([s.test])
            return _meet(block(s.body, bound), block(s.orelse, bound))
        if isinstance(s, ast.With | ast.AsyncWith):
            self._uses([item.context_expr for item in s.items], bound, around)
            return block(s.body, bound | _locals([item.optional_vars for item in s.items if item.optional_vars]))
        if isinstance(s, ast.Try | ast.TryStar):
            tried = block(s.body, bound)
            after = block(s.orelse, tried) if tried is not None else None
            for handler in s.handlers:
                self._uses([handler.type] if handler.type else [], bound, around)
                after = _meet(after, block(handler.body, bound | ({handler.name} if handler.name else frozenset())))
            final = block(s.finalbody, bound)
            return None if after is None or final is None else after | final
        if isinstance(s, ast.Match):
            self._uses([s.subject], bound, around)
            for case in s.cases:
                names = bound | _locals([case.pattern])
                self._uses([case.guard] if case.guard else [], names, around)
                block(case.body, names)
            return bound
        self._uses([s], bound, around)
        if isinstance(s, ast.Delete):
            return bound - {target.id for target in s.targets if isinstance(target, ast.Name)}
        if isinstance(s, LEAVING):
            return None
        return bound | _locals([s])

    def _uses(self, nodes: Iterable[ast.AST | None], bound: Bound, around: tuple[str, ...]) -> None:
        """Counts the names in expressions that are not bound."""
        for node in nodes:
            if node is None:
                continue
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Load) and node.id not in bound:
                    self.unbound[node.id] += 1
            elif isinstance(node, ast.Lambda):
                self._uses([*node.args.defaults, *node.args.kw_defaults], bound, around)
                inner = bound | {a.arg for a in _arguments(node.args)}
                self._stretch(node, inner, inner, around)
                self._uses([node.body], inner, around)
            elif isinstance(node, COMPREHENSIONS):
                inner = bound
                for generator in node.generators:
                    self._uses([generator.iter], inner, around)
                    inner = inner | _locals([generator.target])
                    self._uses(generator.ifs, inner, around)
                self._stretch(node, inner, inner, around)
                self._uses([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt], inner, around)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                self.unbound[node.target.id] += node.target.id not in bound
                self._uses([node.value], bound, around)
            else:
                self._uses(children(node), bound | _walrus(node) if self._binds_inside else bound, around)

    def _stretch(self, node: ast.stmt | ast.expr, inside: Bound, after: Bound | None, around: tuple[str, ...]) -> None:
        end = (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
        self.stretches.append(Stretch((node.lineno, node.col_offset), end, inside, after, around))


def _meet(a: Bound | None, b: Bound | None) -> Bound | None:
    """What is bound where two ways come together, of which None does not get there."""
    if a is None or b is None:
        return b if a is None else a
    return a & b


def _negative(place: Place) -> Place:
    return -place[0], -place[1]


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    more = [a for a in (arguments.vararg, arguments.kwarg) if a]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *more]


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, IMPORTS):
        return [(alias.asname or alias.name).split(".")[0] for alias in node.names]
    return []


@lru_cache(maxsize=128)  # each holds what is bound at every statement, some hundred kB
def names_of(source: str) -> Names:
    """The names of a whole program. Raises SyntaxError."""
    return Names(source)


def _walrus(node: ast.AST) -> set[str]:
    """Names that := binds in an expression; they count as bound in all of it."""
    return {n.target.id for n in walk(node) if isinstance(n, ast.NamedExpr)} if isinstance(node, ast.expr) else set()


def _locals(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that statements or targets bind in their own scope: not those of the functions and classes in them."""
    found: set[str] = set()
    elsewhere: set[str] = set()
    stack: list[ast.AST] = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):  # most are
            if isinstance(node.ctx, ast.Store):
                found.add(node.id)
            continue
        if isinstance(node, DEFINED):
            found.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, COMPREHENSIONS):
            found |= {n.target.id for n in walk(node) if isinstance(n, ast.NamedExpr)}
            continue
        found.update(_imported(node))
        if isinstance(node, NAMING) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
        elif isinstance(node, ELSEWHERE):
            elsewhere.update(node.names)
        stack.extend(children(node))
    return found - elsewhere
