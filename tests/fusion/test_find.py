from __future__ import annotations

import pytest

from rooftrace.fusion import describe, find_candidates
from tests.fusion.programs import (
    ADD,
    BF16,
    BOOL,
    COPY,
    F32,
    GEMM,
    HALF,
    I64,
    MUL,
    OTHER,
    ROWS,
    Alternating,
    Model,
    X,
    inputs_of,
    rms_norm,
)

WIDE = ([8192, 4096], BF16)
PRODUCT = (([8192, 1024], BF16), ([1024, 4096], BF16))


def found(model, platform="h100-sxm"):
    return find_candidates(inputs_of(model, platform))


def listed(result):
    """Pattern, module, instances and words of each candidate."""
    return [
        (
            c.composition.identity if c.composition else "novel",
            c.scope,
            int(c.first.size),
            " ".join(m.word for m in c.replaced),
        )
        for c in result.candidates
    ]


def test_equal_norms_are_one_candidate_that_counts_every_instance_and_all_of_its_time():
    model = Model()
    for layer in range(3):
        rms_norm(model, layer)

    result = found(model)

    assert listed(result) == [("rms_norm", "LlamaRMSNorm", 3, "cast pow mean adds rsqrt mul cast mul")]
    (candidate,) = result.candidates
    assert candidate.time_ns.tolist() == [104_000] * 3  # 20 + 20 + 10 + 2 + 2 + 20 + 15 + 15 µs each
    assert result.activities(candidate).shape == (3, 8)


def test_the_fused_norm_reads_its_input_and_weight_and_writes_its_result():
    model = Model()
    rms_norm(model)

    (candidate,) = found(model).candidates

    # 8192*1024 bf16 in and out = 2 * 16,777,216, and a weight of 1024 bf16 = 2,048
    assert candidate.estimate.nbytes == 33_556_480
    # f32 tensors kept in registers, each written and read today: cast, pow, product = 3 * 33,554,432; mean, add, rsqrt
    # = 3 * 32,768; the cast back 16,777,216
    assert candidate.estimate.inner_bytes == 2 * (3 * 33_554_432 + 3 * 32_768 + 16_777_216)
    # 33,556,480 B / 3.18 TB/s = 10,552.4 ns
    assert candidate.estimate.time.floor_ns == 10_552
    assert candidate.estimate.time.bound == "memory"


def test_instances_of_other_shapes_are_candidates_of_their_own():
    model = Model()
    for _ in range(2):
        model.call("aten::silu", 50, WIDE)
        model.call("aten::mul", 50, WIDE, WIDE, kernel=MUL)
        model.call("aten::silu", 30, X)
        model.call("aten::mul", 30, X, X, kernel=MUL)
        model.call("aten::topk", 100, X, kernel="void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>")

    assert listed(found(model)) == [
        ("swiglu", "top level", 2, "silu mul"),
        ("swiglu", "top level", 2, "silu mul"),
    ]


def test_a_product_between_activation_and_gate_is_no_part_of_the_gated_activation():
    model = Model()
    with model.module("LlamaMLP_0"):
        with model.module("SiLU_0"):
            model.call("aten::silu", 60, WIDE)
        with model.module("Linear_1"):
            model.call("aten::mm", 100, *PRODUCT, kernel=GEMM)
        model.call("aten::mul", 60, WIDE, WIDE, kernel=MUL)

    (candidate,) = found(model).candidates

    assert (candidate.scope, candidate.members) == ("LlamaMLP", (0, 2))
    assert candidate.time_ns.tolist() == [120_000]  # without the product's 100 µs
    assert candidate.estimate.nbytes == 3 * 67_108_864  # 8192*4096 bf16: gate and projection in, one result out


def test_an_activation_after_a_product_joins_it_and_costs_no_memory_traffic():
    model = Model()
    with model.module("MLP_0"):
        model.call("aten::addmm", 100, ([4096], BF16), *PRODUCT, kernel=GEMM, scalars=("1", "1"))
        model.view("aten::view", WIDE, "[8, 1024, 4096]")
        model.call("aten::gelu", 60, ([8, 1024, 4096], BF16), scalars=("none",))

    (candidate,) = found(model).candidates

    assert (candidate.composition.identity, candidate.anchor, candidate.members) == (
        "gemm_epilogue",
        True,
        (1,),
    )
    assert candidate.time_ns.tolist() == [60_000]  # the product's 100 µs are not claimed
    assert candidate.estimate.nbytes == 0


def test_a_residual_added_after_a_product_still_has_to_be_read():
    model = Model()
    with model.module("Block_0"):
        with model.module("Linear_0"):
            model.call("aten::mm", 100, *PRODUCT, kernel=GEMM)
        model.call("aten::add", 60, WIDE, WIDE, kernel=ADD, scalars=("1",))

    (candidate,) = found(model).candidates

    assert (candidate.composition.identity, candidate.scope) == ("gemm_epilogue", "Block")
    assert candidate.estimate.nbytes == 67_108_864  # 8192*4096 bf16, the other operand
    # 67,108,864 B / 3.18 TB/s = 21,103 ns; 33,554,432 adds / 133.8 TFLOP/s = 251 ns, of which 15 % = 38
    assert candidate.fused_ns == 21_141


def test_in_training_the_activations_input_is_written_for_the_backward_pass():
    model = Model()
    with model.module("MLP_0"):
        model.call("aten::addmm", 100, ([4096], BF16), *PRODUCT, kernel=GEMM, scalars=("1", "1"))
        model.call("aten::gelu", 60, WIDE, scalars=("none",))
    model.op("autograd::engine::evaluate_function: GeluBackward0", model.host, 8)

    (candidate,) = found(model).candidates

    assert candidate.estimate.nbytes == 67_108_864  # 8192*4096 bf16


def test_queries_and_keys_that_share_their_tables_rotate_as_one_instance():
    model = Model()
    heads, half, table = ([16, 16, 559, 64], BF16), ([16, 16, 559, 32], BF16), ([1, 1, 559, 64], BF16)
    with model.module("Attention_0"), model.frame("model.py(68): apply_rotary_pos_emb"):
        for _ in range(2):
            model.call("aten::mul", 10, heads, table, kernel=MUL)
            model.view("aten::slice", heads, 3, 32, 9223372036854775807, 1)
            model.call("aten::neg", 5, half)
            model.op(
                "aten::cat",
                model.host,
                8,
                dims=[[half[0], half[0]], []],
                types=["TensorList", "Scalar"],
                concrete=["", "-1"],
            )
            correlation = model.launch(ts=model.host + 2, dur=3)
            model.kernel(
                "void at::native::CatArrayBatchedCopy<OpaqueType<2>, 4>",
                ts=model.gpu,
                dur=10,
                correlation=correlation,
            )
            model.gpu, model.host = model.gpu + 10, model.host + 10
            model.call("aten::mul", 10, heads, table, kernel=MUL)
            model.call("aten::add", 10, heads, heads, kernel=ADD, scalars=("1",))

    result = found(model)

    assert listed(result) == [("rope", "Attention", 1, "mul neg cat mul add mul neg cat mul add")]
    # 16*16*559*64 bf16 = 18,317,312: queries and keys in and out; a table of 559*64 bf16 = 71,552
    assert result.candidates[0].estimate.nbytes == 4 * 18_317_312 + 71_552


@pytest.mark.parametrize(
    "between",
    [
        lambda model: model.call("c10d::allreduce_", 30, kernel="ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
        lambda model: model.copy_between("DtoH"),
        lambda model: model.call("flash_attn::_flash_attn_forward", 30, HALF, kernel="void flash_fwd_kernel<Traits>"),
        lambda model: model.call("triton_poi_fused_add_mul_0", 30, X, X, kernel="triton_poi_fused_add_mul_0"),
    ],
    ids=["communication", "copy to host", "fused attention", "generated and fused"],
)
def test_nothing_is_fused_across_what_must_not_be_crossed(between):
    model = Model()
    model.call("aten::silu", 50, WIDE)
    between(model)
    model.call("aten::mul", 50, WIDE, WIDE, kernel=MUL)

    assert listed(found(model)) == []


def test_calls_on_two_streams_are_not_fused():
    model = Model()
    model.call("aten::silu", 50, WIDE)
    model.call("aten::mul", 50, WIDE, WIDE, kernel=MUL, stream=20)

    assert listed(found(model)) == []


def test_calls_that_no_module_holds_together_are_not_fused_where_modules_are_known():
    model = Model()
    with model.module("SiLU_0"):
        model.call("aten::silu", 50, WIDE)
    with model.module("Gate_0"):
        model.call("aten::mul", 50, WIDE, WIDE, kernel=MUL)

    assert listed(found(model)) == []


def test_shapes_that_do_not_connect_refuse_a_composition_with_its_reason():
    model = Model()
    model.call("aten::silu", 50, WIDE)
    model.call("aten::mul", 50, X, X, kernel=MUL)

    result = found(model)

    assert listed(result) == []
    (refused,) = result.rejected
    assert (refused.what, refused.count, refused.time_ns) == ("SiLU gate times projection", 1, 100_000)
    assert refused.reason == "data flow broken: shapes and element types do not connect the calls"


def test_ten_independent_adds_are_no_chain_and_gain_nothing_as_a_loop_at_full_bandwidth():
    # 8192*1024 f32: 3 * 33,554,432 B / 3.18 TB/s = 31.7 µs each is the floor of an add
    model = Model()
    with model.frame("bench.py(3): main"):
        for _ in range(10):
            model.call("aten::add", 31.5, X, X, kernel=ADD, scalars=("1",))

    assert listed(found(model)) == []


def test_many_small_equal_calls_are_one_multi_tensor_call_whose_traffic_stays():
    model = Model()
    small = ([1000], F32)
    for _ in range(20):
        model.call("aten::add_", 2, small, small, kernel=ADD, scalars=("1",))

    result = found(model)

    assert listed(result) == [("same_op_loop", "top level", 1, " ".join(["add"] * 20))]
    assert result.candidates[0].estimate.nbytes == 20 * 3 * 4000  # each its own two operands and result
    assert result.candidates[0].estimate.time.bound == "latency"


def test_a_chain_that_fits_no_composition_is_found_within_one_module():
    model = Model()
    with model.module("Head_0"):
        model.call("aten::cos", 30, X)
        model.call("aten::mul", 30, X, ROWS, kernel=MUL)
        model.call("aten::tanh", 30, X)

    result = found(model)

    assert listed(result) == [("novel", "Head", 1, "cos mul tanh")]
    # 8192*1024 f32 in and out, 8192 rows f32: 2 * 33,554,432 + 32,768
    assert result.candidates[0].estimate.nbytes == 67_141_632


def test_a_result_that_a_later_call_of_the_module_reads_again_is_written_all_the_same():
    model = Model()
    with model.module("Head_0"):
        model.call("aten::cos", 30, X)
        model.call("aten::sum", 30, X, scalars=("[1]", "True"))
        model.call("aten::mm", 50, ([8192, 1024], F32), ([1024, 16], F32), kernel=GEMM)

    result = found(model)

    assert listed(result) == [("novel", "Head", 1, "cos sum")]
    # input and cosine, which the product reads: 2 * 33,554,432; the sums 8192 * 4
    assert result.candidates[0].estimate.nbytes == 67_141_632
    assert "aten::cos's result is read outside, so written" in result.candidates[0].notes


def test_a_sum_over_everything_ends_a_kernel():
    model = Model()
    with model.module("Loss_0"):
        model.call("aten::cos", 30, X)
        model.call("aten::sum", 30, X)
        model.call("aten::sqrt", 2, ([1], F32))
        model.call("aten::log", 2, ([1], F32))

    assert ("novel", "Loss", 1, "cos sum") in listed(found(model))


def test_without_a_known_gpu_candidates_claim_no_time():
    model = Model(gpu="")
    rms_norm(model)

    result = found(model, platform=None)

    assert result.candidates == ()
    assert [(c.composition.identity, c.reason) for c in result.unrated] == [("rms_norm", "GPU unknown: no ceilings")]


def test_without_shapes_the_order_of_the_ops_is_told_and_no_time_claimed():
    model = Model()
    for name in ("pow", "mean", "add", "rsqrt", "mul"):
        model.call(f"aten::{name}", 10)

    result = found(model)

    assert result.candidates == ()
    (norm,) = result.unrated
    assert (norm.composition.identity, norm.reason, int(norm.time_ns.sum())) == (
        "rms_norm",
        "shapes not recorded",
        50_000,
    )


def test_a_sequence_of_names_in_a_replayed_graph_is_told_without_time():
    model = Model()
    for _ in range(3):
        graph = model.launch("cudaGraphLaunch", ts=model.host, dur=5)
        model.host += 20
        for kernel in (COPY, OTHER.replace("some", "pow_tensor"), OTHER.replace("some", "rsqrt"), MUL, GEMM):
            model.bare(kernel, 5, correlation=graph)

    result = found(model)

    assert result.candidates == ()
    (named,) = result.named
    assert (named.first.size, len(named.kernels), int(named.time_ns.sum()), named.graph) == (
        3,
        4,
        60_000,
        True,
    )


def test_instances_before_the_window_are_counted_apart():
    model = Model()
    kernels = (COPY, OTHER, OTHER, MUL)
    for kernel in (*kernels, GEMM, *kernels, GEMM):
        model.bare(kernel, 10)
    with model.module("Head_0"):
        model.call("aten::copy_", 20, X, HALF, kernel=COPY, scalars=("False",))
        model.call("aten::cos", 20, X)
        model.call("aten::tanh", 20, X)
        model.call("aten::mul", 20, X, ROWS, kernel=MUL)

    result = found(model)

    (candidate,) = result.candidates
    assert (int(candidate.first.size), int(candidate.time_ns.sum())) == (1, 80_000)
    assert result.before_window == {candidate.example: 2}


def test_what_a_generator_left_in_single_kernels_can_still_be_fused():
    model = Model()
    for name in ("triton_poi_fused_cos_0", "triton_poi_fused_exp_1"):
        model.call(name, 40, X, X, kernel=name)

    assert listed(found(model)) == [("novel", "top level", 1, "cos exp")]


def test_a_multi_tensor_op_on_its_slow_path_is_a_loop():
    model = Model()
    start = model.host
    for _ in range(10):
        model.call("aten::mul_", 2, ([100], F32), scalars=("0.9",), kernel=MUL)
    model.op(
        "aten::_foreach_mul_",
        start - 1,
        model.host - start + 2,
        dims=[[[100]] * 10, []],
        types=["TensorList", "Scalar"],
        concrete=["", "0.9"],
    )

    assert listed(found(model)) == [("same_op_loop", "aten::_foreach_mul_", 1, " ".join(["muls"] * 10))]


def test_a_mask_and_an_index_are_not_taken_for_a_chain():
    model = Model()
    with model.module("Mask_0"):
        model.call("aten::index_select", 10, X, ([100], I64), scalars=("0",))
        model.call("aten::bitwise_not", 10, ([64, 64], BOOL))

    assert listed(found(model)) == []


def adam(model, shape):
    """One parameter's update as PyTorch's loop writes it, 4 µs a kernel."""
    tensor = (shape, F32)
    model.call("aten::mul_", 4, tensor, scalars=("0.999",), kernel=MUL)
    model.call("aten::lerp_", 4, tensor, tensor, scalars=("0.1",))
    model.call("aten::mul_", 4, tensor, scalars=("0.999",), kernel=MUL)
    model.call("aten::addcmul_", 4, tensor, tensor, tensor, scalars=("0.001",))
    model.call("aten::sqrt", 4, tensor)
    model.call("aten::div_", 4, tensor, scalars=("0.9",))
    model.call("aten::add_", 4, tensor, scalars=("1e-8", "1"), kernel=ADD)
    model.call("aten::addcdiv_", 4, tensor, tensor, tensor, scalars=("-0.001",))


def test_adam_written_out_is_one_update_of_each_parameter():
    model = Model()
    start = model.host
    for shape in ([1000, 1000], [1000], [500, 1000]):
        adam(model, shape)
    model.annotation("Optimizer.step#Adam.step", start - 1, model.host - start + 2)

    (candidate,) = found(model).candidates

    assert (candidate.composition.identity, candidate.scope, candidate.length) == (
        "adam_loop",
        "Optimizer.step#Adam.step",
        24,
    )
    assert candidate.estimate.nbytes == 7 * 4 * 1_501_000  # weight, gradient and two moments read, three written, f32
    assert candidate.time_ns.tolist() == [96_000]


def test_a_loop_ends_where_its_scope_does():
    model = Model()
    for _ in range(2):
        start = model.host
        adam(model, [1000, 1000])
        model.annotation("Optimizer.step#Adam.step", start - 1, model.host - start + 2)
        model.host += 5

    (candidate,) = found(model).candidates

    assert (candidate.length, candidate.first.tolist()) == (8, [0, 8])


def test_a_tensor_permuted_copied_and_permuted_back_is_a_pair():
    model = Model()
    one, other = ([8, 1024, 512], F32), ([8, 512, 1024], F32)
    with model.module("Mixer_0"):
        model.call("aten::clone", 30, other, kernel=COPY, scalars=("0",))
        model.view("aten::transpose", other, 1, 2)
        model.call("aten::clone", 30, one, kernel=COPY, scalars=("0",))

    assert listed(found(model)) == [("permute_pair", "Mixer", 1, "copy copy")]


def test_copies_of_equal_tensors_one_after_the_other_are_no_chain():
    model = Model()
    with model.module("Attention_0"):
        for _ in range(3):
            model.call("aten::clone", 30, X, kernel=COPY, scalars=("0",))

    result = found(model)

    assert listed(result) == []
    assert "equal calls in a row: shapes cannot tell a chain from work on separate tensors" in {
        item.reason for item in result.rejected
    }


def test_an_instance_tells_where_and_when_it_ran():
    model = Model()
    with model.module("Decoder_0"):
        rms_norm(model, 3)
    run = inputs_of(model)
    result = find_candidates(run)

    (instance,) = describe.instances(run, result, result.candidates[0])

    assert (instance.device, instance.stream, instance.activities) == (0, 7, tuple(range(8)))
    assert instance.end_ns - instance.start_ns == 104_000
    assert instance.module_path == ("Decoder_0", "LlamaRMSNorm_3")


def test_an_optional_end_that_data_does_not_reach_is_left_out():
    model = Model()
    with model.module("Block_0"):
        rms_norm(model)
        model.call("aten::topk", 9, X, kernel="void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>")
        with model.module("RMSNorm_0"):
            model.call("aten::pow", 20, X, scalars=("2",))
            model.op(
                "aten::mean",
                model.host,
                8,
                dims=[[8192, 1024], [], [], []],
                types=[F32, "ScalarList", "Scalar", ""],
                concrete=["", "[-1]", "True", ""],
            )
            correlation = model.launch(ts=model.host + 2, dur=3)
            model.kernel(OTHER, ts=model.gpu, dur=10, correlation=correlation)
            model.gpu, model.host = model.gpu + 10, model.host + 10
            model.call("aten::add", 2, ROWS, kernel=ADD, scalars=("1e-6", "1"))
            model.call("aten::rsqrt", 2, ROWS)
            model.call("aten::mul", 20, X, ROWS, kernel=MUL)
        model.call("aten::mul", 20, ([77, 13], F32), ([77, 13], F32), kernel=MUL)

    words = [call[3] for call in listed(found(model))]

    assert sorted(words) == ["cast pow mean adds rsqrt mul cast mul", "pow mean adds rsqrt mul"]


def test_two_chains_that_take_turns_are_two_candidates():
    model = Model()
    wide, narrow = ([64, 4096], F32), ([64, 512], F32)
    with model.module("Twin_0"):
        for name in ("exp", "tanh", "neg"):
            for shape in (wide, narrow):
                model.call(f"aten::{name}", 20, shape)
    result = found(model)

    claims = [result.activities(candidate).tolist() for candidate in result.candidates]
    assert sorted(claims) == [[[0, 2, 4]], [[1, 3, 5]]]


def test_two_threads_that_take_turns_on_one_stream_are_two_chains():
    """Kernels of the threads alternate; each thread's are one norm."""
    model = Alternating()
    rms_norm(model)
    model.switch(2)
    rms_norm(model)
    result = found(model)

    assert [candidate.composition.identity for candidate in result.candidates] == ["rms_norm"]
    claims = result.activities(result.candidates[0]).tolist()
    assert claims == [list(range(0, 16, 2)), list(range(1, 16, 2))]


def test_a_thread_that_is_away_for_long_does_not_go_on_with_its_chain():
    model = Model()
    model.call("aten::exp", 20, X)
    model.thread = 2
    for _ in range(12):
        model.call("aten::mm", 20, HALF, ([1024, 1024], BF16), kernel=GEMM)
    model.thread = 1
    model.call("aten::tanh", 20, X)

    assert found(model).candidates == ()
