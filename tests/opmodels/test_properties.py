"""Whatever the arguments are, a cost is a cost or a reason: nothing is raised, nothing is negative."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from rooftrace.opmodels import MODELS, Cost, Op, Tensor, Unmodelled, cost_of, find_model, op_from_record
from rooftrace.opmodels.attention import attended_pairs
from rooftrace.opmodels.dtypes import ITEMSIZE

NAMES = [*sorted(MODELS), "triton_poi_fused_add_slice_0", "triton_red_fused__softmax_1", "triton_tem_fused_mm_2"]

sizes = st.lists(st.integers(0, 5), max_size=5).map(tuple)
tensors = st.builds(Tensor, shape=sizes, dtype=st.sampled_from([None, *ITEMSIZE]))
texts = st.sampled_from(
    ["", "0", "1", "-1", "3", "True", "False", "[]", "[1]", "[1, 1]", "[-7]", "0.5", "1e400", "x", "15"]
)
arguments = st.one_of(tensors, texts, st.none(), st.lists(tensors, max_size=3).map(tuple))

junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=2), inner, max_size=2)),
    max_leaves=12,
)


def _is_sound(cost: Cost | Unmodelled) -> bool:
    if isinstance(cost, Unmodelled):
        return bool(cost.reason)
    counts = (cost.flops, cost.bytes_read, cost.bytes_written)
    return all(type(n) is int and n >= 0 for n in counts)


@settings(max_examples=1500, deadline=None)
@given(name=st.sampled_from(NAMES), args=st.lists(arguments, max_size=14).map(tuple))
def test_any_arguments_give_a_cost_or_a_reason(name: str, args: tuple[object, ...]) -> None:
    assert _is_sound(cost_of(Op(name=name, args=args)))  # type: ignore[arg-type]


@settings(max_examples=400, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    dims=st.one_of(st.none(), st.lists(junk, max_size=6)),
    types=st.one_of(st.none(), st.lists(junk, max_size=6)),
    strides=st.one_of(st.none(), st.lists(junk, max_size=6)),
    concrete=st.one_of(st.none(), st.lists(junk, max_size=6)),
)
def test_any_record_gives_a_cost_or_a_reason(
    name: str,
    dims: list[object] | None,
    types: list[object] | None,
    strides: list[object] | None,
    concrete: list[object] | None,
) -> None:
    assert _is_sound(cost_of(op_from_record(name, dims, types, strides, concrete)))


@settings(max_examples=300, deadline=None)
@given(name=st.sampled_from(NAMES), data=st.data())
def test_an_example_with_one_argument_replaced_gives_a_cost_or_a_reason(name: str, data: st.DataObject) -> None:
    model = find_model(name)
    assert model is not None
    args = list(data.draw(st.sampled_from(model.examples)).args)
    args[data.draw(st.integers(0, len(args) - 1))] = data.draw(arguments)

    assert _is_sound(cost_of(Op(name=name, args=tuple(args))))


@settings(max_examples=200, deadline=None)
@given(name=st.sampled_from(NAMES), data=st.data())
def test_a_cost_depends_on_nothing_but_the_op(name: str, data: st.DataObject) -> None:
    op = Op(name=name, args=tuple(data.draw(st.lists(arguments, max_size=6))))

    assert cost_of(op) == cost_of(op)


@given(
    nq=st.integers(0, 12),
    nk=st.integers(0, 12),
    left=st.one_of(st.none(), st.integers(0, 14)),
    right=st.one_of(st.none(), st.integers(0, 14)),
    bottom_right=st.booleans(),
)
def test_attended_pairs_are_those_that_a_mask_lets_through(
    nq: int, nk: int, left: int | None, right: int | None, *, bottom_right: bool
) -> None:
    shift = nk - nq if bottom_right else 0
    mask = [
        (left is None or key >= query + shift - left) and (right is None or key <= query + shift + right)
        for query in range(nq)
        for key in range(nk)
    ]

    assert attended_pairs(nq, nk, left=left, right=right, bottom_right=bottom_right) == sum(mask)
