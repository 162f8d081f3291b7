"""What a program is, its looks aside: a normal form, its hash, and how alike two programs are.

Novelty by a normalised syntax-tree hash (equal or not) and by the cosine of character n-grams of the normal form.
"""

from __future__ import annotations

import ast
import hashlib
from collections import deque
from collections.abc import Iterator
from functools import cache, lru_cache

import numpy as np

WIDTH = 2048  # buckets of the hashed n-grams; 8 kB a vector, so that 10,000 of them take 80 MB
KEPT = 10_000  # programs whose normal form and vector are remembered

Function = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
# Tuples, since a union of types is made anew wherever it is written, and these are asked for at every node.
DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
NAMING = (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
ELSEWHERE = (ast.Global, ast.Nonlocal)
IMPORTS = (ast.Import, ast.ImportFrom)
WRITTEN = (ast.Store, ast.Del)
HOLDERS = (ast.Module, *DEFINED)  # of docstrings


FLAT = {"ctx", "op", "ops", "id", "attr", "arg", "asname", "module", "level", "is_async", "simple", "kind"}
FLAT |= {"type_comment", "conversion", "rest", "kwd_attrs"}  # fields that hold no node with anything in it


@cache
def deep(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a type of node that may hold others."""
    return () if kind is ast.Constant else tuple(name for name in kind._fields if name not in FLAT)


def children(node: ast.AST) -> list[ast.AST]:
    """`ast.iter_child_nodes` without operators and contexts, which have nothing in them, at a fifth of its cost."""
    found: list[ast.AST] = []
    for name in deep(type(node)):  # type: ignore[arg-type]
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif type(value) is list:
            found += [part for part in value if isinstance(part, ast.AST)]
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """`ast.walk` over `children`: the node and all below it, breadth first.

    What the reader takes out of a node that it has been given is walked all the same.
    """
    waiting = deque([node])
    while waiting:
        node = waiting.popleft()
        waiting.extend(children(node))
        yield node


@lru_cache(KEPT)
def normal_form(source: str) -> str:
    """The program without comments, docstrings and layout, with the local variables of functions renamed in order.

    What others may refer to by name keeps it: what a module or a class defines, functions, what is imported, and the
    parameters of a `def`, since a caller may name them. Raises SyntaxError.
    """
    try:
        tree = ast.parse(source)
    except (ValueError, RecursionError, MemoryError) as e:  # null bytes, too deep
        raise SyntaxError(str(e) or type(e).__name__) from None
    shared: set[str] = set()
    for node in walk(tree):
        if isinstance(node, HOLDERS):
            _drop_docstring(node)
        elif isinstance(node, ast.Nonlocal):
            shared.update(node.names)
    finder = _Locals(shared)
    finder.visit(tree)
    finder.rename()
    return ast.unparse(tree)


def tree_hash(source: str) -> str:
    """Hash of the normal form, 32 hexadecimal digits. Raises SyntaxError."""
    return hashlib.blake2b(normal_form(source).encode(), digest_size=16).hexdigest()


@lru_cache(KEPT)
def ngrams(source: str, n: int = 3) -> np.ndarray:
    """Counts of the character n-grams of the normal form, hashed into `WIDTH` buckets, at length 1; do not write to it.

    float32, shape (WIDTH,); all zero for a program of less than n characters. Raises SyntaxError.
    """
    codes = np.frombuffer(normal_form(source).encode("utf-32-le"), np.uint32).astype(np.uint64)
    counts = np.zeros(WIDTH, np.float32)
    if len(codes) >= n:
        grams = np.zeros(len(codes) - n + 1, np.uint64)
        for i in range(n):
            grams = grams * np.uint64(1_000_003) + codes[i : i + len(grams)]  # wraps around: a polynomial hash
        mixed = grams * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(53)  # Fibonacci hashing; the upper 11 bits
        counts = np.bincount(mixed.astype(np.int64), minlength=WIDTH).astype(np.float32)
        counts /= np.linalg.norm(counts)
    counts.flags.writeable = False
    return counts


def similarity(a: str, b: str) -> float:
    """Cosine of the 3-grams of two programs, from 0 to 1; 1 for those of the same normal form. Raises SyntaxError."""
    if normal_form(a) == normal_form(b):
        return 1.0
    return float(np.clip(ngrams(a) @ ngrams(b), 0.0, 1.0))


def _drop_docstring(node: ast.Module | ast.ClassDef | Function) -> None:
    body = node.body
    if ast.get_docstring(node, clean=False) is not None:
        del body[0]
    if not body and not isinstance(node, ast.Module):
        body.append(ast.Pass())


class _Scope:
    """Names of one function, lambda or comprehension: which are local variables, and where they are written."""

    def __init__(self, outer: _Scope | None, local: set[str], kept: set[str]) -> None:
        self.outer, self.local, self.kept = outer, local, kept
        self.names: dict[str, str] = {}

    def owner(self, name: str) -> _Scope | None:
        """The scope whose local variable a name is, seen from here; None if it is not one."""
        if name in self.kept:
            return None
        if name in self.local:
            return self
        return self.outer.owner(name) if self.outer else None


class _Locals(ast.NodeVisitor):
    """Finds all places that write a local variable's name, in the order of the tree, then renames them."""

    def __init__(self, shared: set[str]) -> None:
        self.shared = shared  # names of `nonlocal` statements, which are kept
        self.scope: _Scope | None = None
        self.places: list[tuple[ast.AST, str, _Scope]] = []  # node, its field with the name, the scope that owns it
        self.taken: set[str] = set()

    def rename(self) -> None:
        count = 0
        for node, field, scope in self.places:
            name = getattr(node, field)
            if name not in scope.names:
                while f"_v{count}" in self.taken:
                    count += 1
                scope.names[name] = f"_v{count}"
                count += 1
            setattr(node, field, scope.names[name])

    def _place(self, node: ast.AST, field: str) -> None:
        name = getattr(node, field)
        owner = self.scope.owner(name) if self.scope and name else None
        if owner:
            self.places.append((node, field, owner))
        elif name:
            self.taken.add(name)

    def _inside(self, scope: _Scope, nodes: list[ast.AST]) -> None:
        outer, self.scope = self.scope, scope
        self.taken.update(scope.kept)
        for node in nodes:
            self.visit(node)
        self.scope = outer

    def generic_visit(self, node: ast.AST) -> None:
        """All below, in their order."""
        for child in children(node):
            self.visit(child)

    def visit_Name(self, node: ast.Name) -> None:
        self._place(node, "id")

    def visit_arg(self, node: ast.arg) -> None:
        self._place(node, "arg")
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._place(node, "name")
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self._place(node, "name")
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        self._place(node, "name")

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self._place(node, "rest")
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = node.args
        for part in (*node.decorator_list, *arguments.defaults, *filter(None, arguments.kw_defaults), node.returns):
            if part:
                self.visit(part)
        names = _arguments(arguments)
        for argument in names:
            if argument.annotation:
                self.visit(argument.annotation)
        kept = {argument.arg for argument in names}
        kept |= self.shared
        local: set[str] = set()
        for statement in node.body:
            _bindings(statement, local, kept)
        self._inside(_Scope(self.scope, local, kept), list(node.body))

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(part)
        names = _arguments(node.args)
        self._inside(_Scope(self.scope, {a.arg for a in names}, set()), [*names, node.body])

    def _comprehension(self, node: Comprehension) -> None:
        self.visit(node.generators[0].iter)  # in the scope around it
        local: set[str] = set()
        for generator in node.generators:
            _bindings(generator.target, local, set())
        values: list[ast.AST] = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        parts: list[ast.AST] = [node.generators[0].target, *node.generators[0].ifs]
        for generator in node.generators[1:]:
            parts += [generator.iter, generator.target, *generator.ifs]
        self._inside(_Scope(self.scope, local, set()), [*parts, *values])

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    more = [a for a in (arguments.vararg, arguments.kwarg) if a]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *more]


def _bindings(node: ast.AST, local: set[str], kept: set[str]) -> None:
    """Adds the variables that a part of a function's body binds to `local`, what keeps its name to `kept`."""
    if isinstance(node, ast.Name):  # most are
        if isinstance(node.ctx, WRITTEN):
            local.add(node.id)
        return
    if isinstance(node, DEFINED):
        kept.add(node.name)
        return
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, IMPORTS):
        kept.update((a.asname or a.name).split(".")[0] for a in node.names)
    elif isinstance(node, ELSEWHERE):
        kept.update(node.names)
    elif isinstance(node, NAMING) and node.name:
        local.add(node.name)
    elif isinstance(node, ast.MatchMapping) and node.rest:
        local.add(node.rest)
    inner = [node.generators[0].iter] if isinstance(node, COMPREHENSIONS) else children(node)
    for child in inner:
        _bindings(child, local, kept)
    if isinstance(node, COMPREHENSIONS):  # its targets are its own, but := binds around it
        for child in walk(node):
            if isinstance(child, ast.NamedExpr):
                _bindings(child.target, local, kept)
