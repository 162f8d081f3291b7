"""Offsets of nodes against libcst's own positions."""

from __future__ import annotations

import ast
import inspect
import textwrap

import libcst as cst
import pytest
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from evolvent.search import normal
from evolvent.search.variation import fragments, names
from evolvent.search.variation.positions import positions

ODD = (
    "",
    "\n",
    "x = 1",
    "# only words\n",
    "if a: b = (1,\n  2)  # why\nelse:\n    pass\n\n\n# end\n",
    "@f\n@g(1)\nasync def h(a, *b, c: int = 2, **d) -> None:\n\treturn [x async for x in y if not z]\n",
    "class A(B, metaclass=C):\n    '''Words\n    of two lines.'''\n    x: int = 3; y = 4\n",
    "try:\n    a\nexcept (B, C) as d:\n    raise E from d\nelse:\n    f\nfinally:\n    del g\n",
    "match a:\n    case {'b': [1, *c]} if c:\n        x = f'{c!r:>{3}} é'\n    case _:\n        pass\n",
    "with a as b, (yield c): pass\nlambda *x, y=1: (x, -y, not y, a if b else c)\nx = y = z[1:2, ...]\n",
    "def f():\n    if a:\n        return\n\n    # before\n    for i in j:\n        continue\n    else: break\n",
)


@pytest.mark.parametrize("source", [*ODD, *map(inspect.getsource, (normal, names, fragments, textwrap))])
def test_offsets_are_those_of_the_position_provider(source: str) -> None:
    module = cst.parse_module(source)
    found = positions(module)
    starts = [0]
    for line in source.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    wanted = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    assert wanted.keys()
    for node, where in wanted.items():
        assert isinstance(where, CodeRange)
        ends = [starts[place.line - 1] + place.column for place in (where.start, where.end)]
        assert found[id(node)] == tuple(ends), type(node)
    assert len(found) == len(wanted)


def test_children_are_those_of_ast_but_for_what_holds_nothing() -> None:
    flat = ast.expr_context | ast.operator | ast.boolop | ast.unaryop | ast.cmpop
    for source in ODD:
        for node in ast.walk(ast.parse(source)):
            wanted = [child for child in ast.iter_child_nodes(node) if not isinstance(child, flat)]
            assert normal.children(node) == wanted
