from __future__ import annotations

from rooftrace.fusion.flow import components, trace_flow
from rooftrace.fusion.meaning import Meaning
from rooftrace.opmodels import Tensor

A = Tensor(shape=(8, 4), dtype="float32")  # 128 bytes
B = Tensor(shape=(8, 4), dtype="bfloat16")  # 64 bytes
ROW = Tensor(shape=(8, 1), dtype="float32")  # 32 bytes
PART = Tensor(shape=(8, 2), dtype="float32")  # 64 bytes


def step(word, reads, writes, **more):
    return Meaning(name=f"aten::{word}", word=word, reads=tuple(reads), writes=tuple(writes), **more)


def view(source, *targets):
    return Meaning(name="aten::view", word="view", reads=(source,), writes=targets)


def test_a_tensor_that_one_call_makes_and_the_next_reads_stays_inside():
    flow = trace_flow([step("cos", [A], [A]), step("exp", [A], [A])], frozenset({0, 1}))

    assert flow.edges == ((0, 1),)
    assert (flow.read_bytes, flow.written_bytes) == (128, 128)
    assert [value.maker for value in flow.inner] == [0]


def test_element_types_keep_equal_shapes_apart():
    flow = trace_flow([step("cos", [A], [A]), step("sin", [B], [B])], frozenset({0, 1}))

    assert flow.edges == ()
    assert (flow.read_bytes, flow.written_bytes) == (192, 192)  # 128 + 64 each way


def test_a_view_carries_a_tensor_to_its_new_shape():
    flat = Tensor(shape=(32,), dtype="float32")
    steps = [step("cos", [A], [A]), view(A, flat), step("exp", [flat], [flat])]

    assert trace_flow(steps, frozenset({0, 2})).edges == ((0, 2),)


def test_two_halves_of_one_tensor_are_read_once_in_total():
    steps = [view(A, PART, PART), step("silu", [PART], [PART]), step("mul", [PART, PART], [PART])]
    flow = trace_flow(steps, frozenset({1, 2}))

    assert len(flow.external) == 1
    assert flow.read_bytes == 128  # both halves of 64


def test_a_second_operand_of_one_shape_is_a_tensor_of_its_own():
    flow = trace_flow([step("silu", [A], [A]), step("mul", [A, A], [A])], frozenset({0, 1}))

    assert (len(flow.external), flow.read_bytes) == (2, 256)


def test_where_all_operands_are_one_input_it_is_read_once():
    steps = [step("sigmoid", [A], [A]), step("mul", [A, A], [A])]

    assert trace_flow(steps, frozenset({0, 1}), one_input=True).read_bytes == 128


def test_an_operand_made_by_a_call_in_between_is_external():
    steps = [step("silu", [A], [A]), step("mm", [B, B], [A]), step("mul", [A, A], [A])]
    flow = trace_flow(steps, frozenset({0, 2}))

    assert [value.maker for value in flow.external] == [-1, 1]
    assert flow.edges == ((0, 2),)


def test_what_a_later_call_outside_reads_is_written():
    steps = [step("cos", [A], [A]), step("sum", [A], [ROW]), step("mm", [A], [PART])]
    flow = trace_flow(steps, frozenset({0, 1}))

    assert flow.written_bytes == 160  # 128 of the cosine, 32 of the sums
    assert flow.forced == ("aten::cos's result is read outside, so written",)


def test_a_new_tensor_of_that_shape_is_what_the_later_call_reads():
    steps = [step("cos", [A], [A]), step("sum", [A], [ROW]), step("sin", [B], [A]), step("mm", [A], [PART])]

    assert trace_flow(steps, frozenset({0, 1})).written_bytes == 32


def test_a_result_that_the_composition_says_others_need_is_written():
    steps = [step("add", [A, A], [A]), step("layer_norm", [A], [A])]

    assert trace_flow(steps, frozenset({0, 1}), always_written=frozenset({"add"})).written_bytes == 256


def test_a_mask_is_written_only_if_a_backward_pass_reads_it():
    mask = Tensor(shape=(8, 4), dtype="bool")
    steps = [step("dropout", [A], [A, mask], side_writes=1), step("add", [A, A], [A])]

    assert trace_flow(steps, frozenset({0, 1})).written_bytes == 128
    assert trace_flow(steps, frozenset({0, 1}), training=True).written_bytes == 160  # and 32 of the mask


def test_a_member_without_shapes_makes_the_flow_unknown():
    steps = [step("cos", [A], [A]), step("sin", [], [], reason="shapes not recorded")]

    assert trace_flow(steps, frozenset({0, 1})).unknown == "shapes not recorded"


def test_components_are_sets_that_edges_connect():
    assert components([0, 1, 2, 3, 4], [(0, 2), (2, 3)]) == [(0, 2, 3), (1,), (4,)]


def test_sine_and_cosine_are_taken_of_one_tensor():
    # cos(a) * 2 and sin(a) * 2: by shape alone the sine would be that of the first product
    steps = [step("cos", [A], [A]), step("muls", [A], [A]), step("sin", [A], [A]), step("muls", [A], [A])]
    flow = trace_flow(steps, frozenset(range(4)))

    assert flow.edges == ((0, 1), (2, 3))
    assert flow.shared == ((0, 2),)
    assert (flow.read_bytes, flow.written_bytes) == (128, 256)
