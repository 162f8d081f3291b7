"""The recipe algebra: what merges, what conflicts, what is refused, and that order does not matter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from evolvent.core import recipe as algebra
from evolvent.core.build import Builder
from evolvent.core.errors import UserError
from evolvent.core.recipe import Recipe, compile_plan, put, show_path, wrap


def plus_one(value: int) -> int:
    return value + 1


def doubled(value: int) -> int:
    return 2 * value


def scale_a(x: float, *, eps: float = 0.1) -> float:
    return x + eps


def scale_b(x: float, *, eps: float = 0.2, other: int = 3) -> float:
    return x + eps + other


@dataclass
class Inner:
    depth: int = 1


@dataclass
class Part:
    n: int = 4
    rate: float = 0.5
    scale: Any = scale_a
    inner: Any = Inner
    names: tuple[str, ...] = ()
    limit: int | None = None
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass
class Other:
    m: int = 7


@dataclass
class Around:
    inner: Any
    window: int = 8
    seen: list[int] = field(default_factory=list, init=False)


def make(name: str, parent: Recipe | None, *ops: Any, **more: Any) -> Recipe:
    return Recipe(name, parent, tuple(ops), **more)


base = make("base", None, put("propose", Part))
left = make("left", base, put("propose.n", 8), put("propose.scale", scale_b, eps=0.5))
right = make("right", base, put("propose.n", 16))
same_n = make("same-n", base, put("propose.n", 8))
wrapped = make("wrapped", base, wrap("propose.n", plus_one))
twice = make("twice", base, wrap("propose.n", doubled))
around = make("around", base, wrap("propose", Around, window=3))
child = make("child", left, put("propose.n", 32))
replaced = make("replaced", base, put("propose", Other))
KNOWN = {r.name: r for r in (base, left, right, same_n, wrapped, twice, around, child, replaced)}


def built(
    composition: str, settings: dict[str, Any] | None = None, take: dict[str, str] | None = None, profile: Any = None
) -> Any:
    builder = Builder(compile_plan(composition, KNOWN, settings, take), profile or {})
    made = builder.role("", dict.fromkeys(algebra.SLOTS))
    builder.finish()
    return made


def part(composition: str, **kwargs: Any) -> Any:
    return built(composition, **kwargs).slots["propose"]


def test_a_recipe_overrides_its_ancestors() -> None:
    assert part("base").n == 4
    assert part("left").n == 8
    assert part("child").n == 32


def test_fields_of_a_put_are_keys_below_it() -> None:
    assert part("left").scale(0.0) == pytest.approx(0.5 + 3)
    assert part("left", settings={"propose.scale.other": "1"}).scale(0.0) == pytest.approx(0.5 + 1)


def test_a_shared_ancestor_applies_once() -> None:
    plan = compile_plan("left+wrapped", KNOWN)
    assert [r.name for r in plan.recipes].count("base") == 1


def test_equal_values_of_strangers_agree_and_different_ones_conflict() -> None:
    assert part("left+same-n").n == 8
    with pytest.raises(UserError, match=r"`left` and `right` put different values at propose.n \(8 and 16\)"):
        part("left+right")


@pytest.mark.parametrize("winner", ["left", "right"])
@pytest.mark.parametrize("order", ["left+right", "right+left"])
def test_take_resolves_a_conflict_in_either_order(winner: str, order: str) -> None:
    assert part(order, take={"propose.n": winner}).n == {"left": 8, "right": 16}[winner]


@pytest.mark.parametrize("winner", ["left", "right", "third"])
@pytest.mark.parametrize("order", ["left+right+third", "third+left+right", "right+third+left"])
def test_take_settles_three_recipes_in_any_order(monkeypatch: pytest.MonkeyPatch, winner: str, order: str) -> None:
    monkeypatch.setitem(KNOWN, "third", make("third", base, put("propose.n", 24)))
    assert part(order, take={"propose.n": winner}).n == {"left": 8, "right": 16, "third": 24}[winner]


def test_what_is_taken_leaves_the_fields_of_the_others_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KNOWN, "a", make("a", base, put("propose.scale", scale_a, eps=0.7)))
    monkeypatch.setitem(KNOWN, "b", make("b", base, put("propose.scale", scale_b, other=5)))
    assert part("a+b", take={"propose.scale": "a"}).scale(0.0) == pytest.approx(0.7)
    assert part("a+b", take={"propose.scale": "b"}).scale(0.0) == pytest.approx(0.2 + 5)


def test_take_where_nobody_puts_is_refused() -> None:
    with pytest.raises(UserError, match=r"`left` puts nothing there that counts; nobody does"):
        part("left+right", take={"propose.n": "left", "propose.m": "left"})
    with pytest.raises(UserError, match=r"`wrapped` is not part|`wrapped` puts nothing there that counts; `left`"):
        part("left+wrapped", take={"propose.n": "wrapped"})


def test_what_the_user_sets_settles_a_conflict() -> None:
    assert part("left+right", settings={"propose.n": 3}).n == 3
    assert part("left+right", settings={"propose": f"{__name__}:Part"}).n == 4


def test_the_order_of_the_users_settings_does_not_matter() -> None:
    lines = {"propose.n": 3, "propose": f"{__name__}:Part"}
    for settings in (lines, dict(reversed(lines.items()))):
        assert part("left", settings=settings).n == 3


def test_take_of_a_stranger_is_refused() -> None:
    with pytest.raises(UserError, match="not part of this composition"):
        part("left+right", take={"propose.n": "child"})


def test_a_descendant_beats_its_ancestor_in_either_order() -> None:
    assert part("left+child").n == part("child+left").n == 32


@dataclass
class Owned(Part):
    """A part that brings its own small-scale values."""

    TINY = {"n": 2, "rate": 0.25}  # noqa: RUF012


def test_a_part_may_bring_its_values_of_a_profile_and_the_profile_wins_over_them() -> None:
    known = {**KNOWN, "owned": make("owned", base, put("propose", Owned, n=9, limit=5))}

    def made(profile: Any, name: str, **settings: Any) -> Owned:
        builder = Builder(compile_plan("owned", known, settings), profile, name)
        return builder.role("", dict.fromkeys(algebra.SLOTS)).slots["propose"]

    small = made({}, "tiny")
    assert (small.n, small.rate, small.limit) == (2, 0.25, 5)
    assert made({}, "paper").n == 9
    assert made({Owned: {"n": 3}}, "tiny").n == 3
    assert made({}, "tiny", **{"propose.n": 7}).n == 7


def test_the_user_wins_over_recipes_and_profile_and_wraps_come_last() -> None:
    profile = {Part: {"n": 2}}
    assert part("left", profile=profile).n == 2
    assert part("left", profile=profile, settings={"propose.n": "5"}).n == 5
    assert part("left+wrapped", profile=profile, settings={"propose.n": "5"}).n == 6


def test_wraps_stack_left_inner_right_outer() -> None:
    assert part("wrapped+twice").n == 10
    assert part("twice+wrapped").n == 9


def test_a_wrap_around_a_part_keeps_the_paths_below_it() -> None:
    made = part("around+left", settings={"propose.n": "3", "propose.around.window": "5"})
    assert isinstance(made, Around)
    assert (made.window, made.inner.n) == (5, 3)


def test_every_part_ever_built_is_listed_wrapped_ones_included() -> None:
    assert set(built("around").parts) == {"propose", "propose.around", "propose.inner"}


def test_a_key_that_nothing_reads_names_its_writer_and_the_nearest_key() -> None:
    with pytest.raises(UserError, match=r"no key `propose.nn` \(set by you\): propose has .*did you mean propose\.\w+"):
        part("base", settings={"propose.nn": "5"})
    with pytest.raises(UserError, match=r"no key `propose\.(n|scale)` \(put there by `left`\): propose has m"):
        part("left+replaced")


def test_a_key_below_a_plain_value_is_not_read() -> None:
    with pytest.raises(UserError, match="no key `propose.n.deep`"):
        part("base", settings={"propose.n.deep": "5"})


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ("propose.n", "12", 12),
        ("propose.rate", "3e-4", 3e-4),
        ("propose.limit", "none", None),
        ("propose.limit", "7", 7),
        ("propose.names", "a, b", ("a", "b")),
        ("propose.inner.depth", "3", None),
    ],
)
def test_strings_from_the_command_line_are_read_as_the_field_type(path: str, text: str, value: Any) -> None:
    made = part("base", settings={path: text})
    name = path.split(".")[1]
    if name == "inner":
        assert made.inner.depth == 3
    else:
        assert getattr(made, name) == value


@pytest.mark.parametrize(
    ("path", "text"), [("propose.n", "many"), ("propose.n", "1.5"), ("propose.rate", "nan"), ("propose.rate", "x")]
)
def test_values_of_the_wrong_type_are_refused(path: str, text: str) -> None:
    with pytest.raises(UserError, match=f"{path} must be"):
        part("base", settings={path: text})


def test_entries_of_a_mapping_are_keys_below_it() -> None:
    assert part("base", settings={"propose.weights.lines": "0.5"}).weights == {"lines": 0.5}
    both = part("base", settings={"propose.weights": {"lines": 1.0, "names": 2.0}, "propose.weights.lines": "0.5"})
    assert both.weights == {"lines": 0.5, "names": 2.0}
    assert part("base").weights == {}
    (setting,) = [s for s in built("base", {"propose.weights.lines": "1"}).settings if s.path[-1] == "weights"]
    assert (setting.value, setting.origin, setting.paper) == ({"lines": 1.0}, algebra.USER, {})
    with pytest.raises(UserError, match="propose.weights must be Mapping"):
        part("base", settings={"propose.weights.lines": "much"})


def test_a_part_by_name_comes_from_the_module_of_its_default() -> None:
    assert part("base", settings={"propose.scale": "scale_b"}).scale(0.0) == pytest.approx(3.2)
    with pytest.raises(UserError, match="no part `scale_x`; did you mean scale_"):
        part("base", settings={"propose.scale": "scale_x"})
    with pytest.raises(UserError, match="cannot import"):
        part("base", settings={"propose.scale": "no.such.module:thing"})


@pytest.mark.parametrize("path", ["propose..n", "propose.n-1", "nowhere.n"])
def test_malformed_paths_are_refused(path: str) -> None:
    with pytest.raises(UserError):
        part("base", settings={path: "1"})


def test_an_unknown_recipe_suggests_the_nearest() -> None:
    with pytest.raises(UserError, match="unknown recipe `lft`; did you mean left"):
        part("lft")


def test_roles_have_paths_of_their_own_and_strangers_must_name_one() -> None:
    pair = make("pair", None, put("b/propose.n", 3), roles={"a": left, "b": base})
    known = {**KNOWN, "pair": pair}
    plan = compile_plan("pair+a/wrapped", known)
    builder = Builder(plan, {})
    a, b = (builder.role(r, dict.fromkeys(algebra.SLOTS)).slots["propose"] for r in ("a", "b"))
    builder.finish()
    assert (a.n, b.n) == (9, 3)
    assert plan.roles == ["a", "b"]
    with pytest.raises(UserError, match="write a/wrapped or b/wrapped"):
        compile_plan("pair+wrapped", known)
    with pytest.raises(UserError, match="unknown role `c`"):
        compile_plan("pair+c/wrapped", known)


def test_a_recipe_of_roles_overrides_the_recipes_it_starts_from() -> None:
    pair = make("pair", None, put("a/propose.n", 3), roles={"a": left})
    assert compile_plan("pair", {"pair": pair}).values["a", "propose", "n"].value == 3


def test_every_ordered_pair_gives_the_same_plan_or_the_same_refusal() -> None:
    def outcome(composition: str) -> Any:
        try:
            plan = compile_plan(composition, KNOWN)
        except UserError:
            return "refused"
        return {show_path(p): e.value for p, e in plan.values.items()}

    for a in KNOWN:
        for b in KNOWN:
            assert outcome(f"{a}+{b}") == outcome(f"{b}+{a}"), (a, b)


def test_a_part_that_is_replaced_takes_the_keys_below_it_along() -> None:
    descendant = make("descendant", left, put("propose", Other, m=3))
    made = compile_plan("descendant", {**KNOWN, "descendant": descendant})
    assert {show_path(p) for p in made.values} == {"propose", "propose.m"}
    assert part("left", settings={"propose": f"{__name__}:Other"}).m == 7


def test_later_operations_of_a_recipe_win() -> None:
    twice_put = make("twice-put", base, put("propose.n", 1), put("propose.n", 2))
    part_last = make("part-last", base, put("propose.n", 1), put("propose", Part, n=3))
    known = {**KNOWN, "twice-put": twice_put, "part-last": part_last}
    assert compile_plan("twice-put", known).values["", "propose", "n"].value == 2
    assert compile_plan("part-last", known).values["", "propose", "n"].value == 3


def test_a_recipe_twice_is_a_recipe_once() -> None:
    assert part("wrapped+wrapped").n == 5
    assert part("left+left").n == 8


def test_equal_values_of_other_types_do_not_agree() -> None:
    known = {**KNOWN, "real": make("real", base, put("propose.n", 8.0)), "yes": make("yes", base, put("propose.n", 1))}
    with pytest.raises(UserError, match=r"8 and 8\.0"):
        compile_plan("left+real", known)
    known["true"] = make("true", base, put("propose.n", True))
    with pytest.raises(UserError, match="1 and True"):
        compile_plan("yes+true", known)


def test_a_wrap_that_nothing_reads_is_refused() -> None:
    lost = make("lost", base, wrap("propose.nothing", plus_one))
    builder = Builder(compile_plan("lost", {**KNOWN, "lost": lost}), {})
    builder.role("", dict.fromkeys(algebra.SLOTS))
    with pytest.raises(UserError, match="no key `propose.nothing` .put there by `lost`"):
        builder.finish()


@pytest.mark.parametrize("composition", ["", "left+", "+left", "left++right", "nowhere/left"])
def test_compositions_that_are_none(composition: str) -> None:
    with pytest.raises(UserError, match="no recipe on one side|unknown role"):
        compile_plan(composition, KNOWN)


def test_a_name_belongs_to_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(algebra, "REGISTRY", {"taken": make("taken", None, file="elsewhere.py")})
    with pytest.raises(UserError, match=r"recipe `taken` is defined twice: in elsewhere\.py and .*test_recipe\.py"):
        algebra.recipe("taken", base)
    first = algebra.recipe("mine", base, put("propose.n", 1), title="Mine")
    again = algebra.recipe("mine", base, put("propose.n", 2), title="Mine")  # the same file, loaded again
    assert algebra.REGISTRY["mine"] is again is not first
    assert again.family == "core"
    assert again.doc.startswith("The recipe algebra")
    assert again.descends_from(base)
    assert not base.descends_from(again)
