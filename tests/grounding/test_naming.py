"""GROUND004: names of the trace, and names that are no trace's."""

from __future__ import annotations

import pytest

from rooftrace.contracts import store
from rooftrace.contracts.model_evidence import Guess, ModelEvidence, ModuleClass
from rooftrace.report.assemble import open_grounds
from tests.grounding.slots import told
from tests.report.sample import gpu_files, write_files


@pytest.mark.parametrize(
    "text",
    [
        "The `aten::mm` of `Model/Block_0/Linear_0`, of `Block_0`, of `Linear`.",
        "aten::mm launches `nvjet_tst_128x256_64x4_1x2_h_bz_TNT`.",
        "`vectorized_elementwise_kernel` and `at::native::CUDAFunctor_add<c10::BFloat16>` are parts of a name.",
        "`train.py(31): forward` calls it in `ProfilerStep#4`.",
        "`Block.forward` and `Linear.forward()` are called once a step.",
        "`[4096, 4096]`, `4096x4096` and `bfloat16`.",
        '`torch.compile(mode="max-autotune")`, `x.contiguous()`, `.item()`, `non_blocking=True`, `channels_last`.',
        "`ncu --set full`, `rooftrace compare BASE TARGET` and `evidence/kernels.csv`.",
        "A LayerNorm, an RMSNorm and FlashAttention.",
        "`torch.backends.cuda.matmul.allow_tf32 = True`",
    ],
)
def test_names_of_the_trace_and_of_apis_pass(text, grounds):
    assert told("GROUND004", text, grounds) == []


@pytest.mark.parametrize(
    "text",
    [
        '`attn_implementation="flash_attention_2"` and `attn_implementation=flash_attention_3`',
        "`pad_to_multiple_of=64`, `num_workers=8, pin_memory=True`, `bucket_cap_mb=100`",
        "`DataLoader(dataset, num_workers=8, prefetch_factor=4)`, `torch.optim.AdamW(params, lr=1e-4, fused=True)`",
        "`torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION)`, `set_num_threads(8)`, `x.to(torch.bfloat16)`",
        '`torch.set_float32_matmul_precision("high")`, `nn.Conv2d`, `torch.nn.functional.conv2d`',
        "`PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128`, `PYTORCH_TUNABLEOP_ENABLED=1`, `NCCL_MIN_NCHANNELS=16`",
        "`RCCL_MSCCL_ENABLE=1`, `MIOPEN_FIND_MODE=3`, `HIPBLASLT_TENSILE_LIBPATH`, `HF_HUB_ENABLE_HF_TRANSFER=1`",
        "`VLLM_ATTENTION_BACKEND=FLASHINFER`, `SGLANG_ENABLE_JIT_DEEPGEMM=1`, `CUDA_DEVICE_MAX_CONNECTIONS=1`",
        "`--max-num-seqs 256`, `--max-num-seqs=256 --enable-chunked-prefill`, `--cuda-graph-max-bs 64`",
        "`--overlap-grad-reduce`, `--tensor-model-parallel-size 2`, `--fp8-format hybrid`, `--kv-cache-dtype fp8_e5m2`",
        '`zero_optimization.stage=3`, `"overlap_comm": true`, `"reduce_bucket_size": 5e8`, `betas=(0.9, 0.95)`',
        "`vllm serve MODEL --max-num-batched-tokens 8192`",
        "`nvjet_tst_128x256`, `bz_TNT` and `128x256_64x4` are segments of a name.",
    ],
)
def test_settings_of_frameworks_and_segments_of_names_pass(text, grounds):
    assert told("GROUND004", text, grounds) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('It is `backend="rmsnorm_fwd_kernel_v3"`.', 'backend="rmsnorm_fwd_kernel_v3"'),
        ("`gemm_turbo_mode=64` helps.", "gemm_turbo_mode=64"),
        ("`sm90_xmma_gemm_f16_align8` runs.", "sm90_xmma_gemm_f16_align8"),
        ("`torch.fast_mm_v2` runs.", "torch.fast_mm_v2"),
        ("`turbo: 4` helps.", "turbo: 4"),
        ("`--turbo 64` helps.", "--turbo 64"),
        ("`TURBO_MODE=1` helps.", "TURBO_MODE=1"),
        ("`nvjet_tst_128x256_64x8` runs.", "nvjet_tst_128x256_64x8"),
        ("The `fused_rmsnorm_fwd_v3` takes long.", "fused_rmsnorm_fwd_v3"),
        ("It is `aten::bmm`.", "aten::bmm"),
        ("It is aten::convolution.", "aten::convolution"),
        ("Then flash_fwd_kernel runs.", "flash_fwd_kernel"),
        ("The LlamaDecoderLayer does it.", "LlamaDecoderLayer"),
        ("The Qwen2MLP does it.", "Qwen2MLP"),
        ("`torch::jit::fuser_kernel<4>` runs.", "torch::jit::fuser_kernel<4>"),
        ("`[1234, 999]` is the shape.", "[1234, 999]"),
        ("`Block_7` does it.", "Block_7"),
        ("`MoeGate.forward` does it.", "MoeGate.forward"),
        ("`Block.attend` does it.", "Block.attend"),
        ("`nvjet_tst.forward` does it.", "nvjet_tst.forward"),
        ("`mm` is a part of a word: `m1024n512`.", "m1024n512"),
    ],
)
def test_other_names_are_refused(text, name, grounds):
    assert [problem.split("`")[1] for problem in told("GROUND004", text, grounds)] == [name]


def test_the_message_names_what_is_near(grounds):
    assert told("GROUND004", "It is `aten::addd`.", grounds) == [
        "`aten::addd` is neither in the trace nor an API or setting; near it: `aten::add`, `aten::to`, `aten::mm`"
    ]
    assert told("GROUND004", "It is `zzqq`.", grounds) == [
        "`zzqq` is neither in the trace nor an API or setting; cite the id that holds the name, or say it without one"
    ]


def test_names_that_only_the_evidence_about_the_model_holds_pass(tmp_path):
    run = write_files(tmp_path, gpu_files())
    text = "It is a `LlamaDecoderLayer` of a LlamaForCausalLM, {{model.layers_count}} of them."
    assert told("GROUND004", text, open_grounds(run))

    about = ModelEvidence(
        tool_version="0.1.0",
        source_sha256="0" * 64,
        summary={"layers_count": 24},
        guess=Guess(name="Llama", family="decoder-only transformer", confidence="medium", reasons=[]),
        components=[],
        classes=[
            ModuleClass(name="LlamaDecoderLayer", instances_count=24),
            ModuleClass(name="LlamaForCausalLM", instances_count=1),
        ],
        sources=[],
    )
    (run / "evidence/model.json").write_bytes(store.to_json(about))
    grounds = open_grounds(run)

    assert told("GROUND004", text, grounds) == []
    assert told("GROUND002", text, grounds) == []


# Names that no trace holds yet, settings, and evidence ids, each beside what stays refused


def refused(text, grounds, **about):
    return [problem.split("`")[1] for problem in told("GROUND004", text, grounds, **about)]


@pytest.mark.parametrize(
    "text",
    [
        "In a new trace `_MultiProcessingDataLoaderIter` appears instead of `aten::mm`.",
        "In a new trace `triton_poi_fused_gelu_0` or `triton_red_fused_sum_1` shows up, and `aten::mm` is gone.",
        "A new kernel `rmsnorm_fwd_kernel` stands where `aten::mm` was.",
        "`aten::mm` is replaced by `fused_gelu_kernel`.",
        "`fused_gelu_kernel` replaces `aten::mm`.",
        "`fused_gelu_kernel` takes the place of `aten::mm`.",
        "Look for `fused_gelu_kernel` under `aten::mm`.",
    ],
)
def test_verify_may_name_what_is_to_appear(text, grounds):
    assert refused(text, grounds, slot="verify") == []


@pytest.mark.parametrize(
    "text",
    [
        "In a new trace `fused_gelu_kernel` is gone.",
        "In a new trace `fused_gelu_kernel` no longer appears.",
        "In a new trace the time of `fused_gelu_kernel` falls.",
        "In a new trace `aten::mm` appears instead of `fused_gelu_kernel`.",
        "In a new trace `aten::mm` replaces `fused_gelu_kernel`.",
        "In a new trace `aten::mm` appears where `fused_gelu_kernel` was.",
        "In a new trace `aten::mm` appears and `fused_gelu_kernel` disappears.",
        "`fused_gelu_kernel`, which appears today, is gone.",
        "`fused_gelu_kernel` appears so far.",
    ],
)
def test_verify_may_not_name_what_is_said_to_be_there_or_to_go(text, grounds):
    assert refused(text, grounds, slot="verify") == ["fused_gelu_kernel"]


@pytest.mark.parametrize("slot", ["insight", "action", "reasoning", "resolution"])
def test_only_verify_speaks_of_what_is_to_appear(slot, grounds):
    assert refused("A new kernel `fused_gelu_kernel` appears.", grounds, slot=slot) == ["fused_gelu_kernel"]


@pytest.mark.parametrize("code", ["win_45_pct", "saved 3 ms", "3ms", "speedup_2x"])
def test_a_quantity_is_nothing_that_appears(code, grounds):
    assert refused(f"In a new trace `{code}` appears.", grounds, slot="verify") == [code]


def test_the_message_says_how_verify_names_what_is_to_come(grounds):
    assert told("GROUND004", "It is `zzqq`.", grounds, slot="verify") == [
        "`zzqq` is neither in the trace nor an API or setting; cite the id that holds the name, or say it without one. "
        "Of a name that is to come, say so: `zzqq` appears"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Set `output_attentions` to False.",
        "Pass `output_attentions=False`, or set `model.config.output_attentions = False`.",
        "Look at `vision_config.output_attentions`.",
        "Use the keyword argument `interpolate_positions` of the processor.",
        "Turn the `use_fast_path` option off.",
    ],
)
def test_settings_that_no_list_holds_pass_where_they_are_written_as_such(text, grounds):
    assert refused(text, grounds, slot="action") == []


@pytest.mark.parametrize(
    ("text", "slot", "name"),
    [
        ("Fuse `turbo_norm` first.", "action", "turbo_norm"),
        ("The `turbo_norm` runs long.", "resolution", "turbo_norm"),
        ("Set `turbo_norm_fwd` to True.", "action", "turbo_norm_fwd"),
        ("Pass `rmsnorm_kernel` on.", "action", "rmsnorm_kernel"),
        ("Set `turbo_mode_64` to on.", "action", "turbo_mode_64"),
        ("The argument `turbo_norm` takes most of the time.", "insight", "turbo_norm"),
        ("It calls `turbo_norm.forward`.", "action", "turbo_norm.forward"),
        ("It calls `Turbo_config.forward`.", "action", "Turbo_config.forward"),
        ("Set `speed_config.gain_45` once.", "action", "speed_config.gain_45"),
    ],
)
def test_other_names_are_no_settings(text, slot, name, grounds):
    assert refused(text, grounds, slot=slot) == [name]


def test_the_message_says_how_a_setting_is_written(grounds):
    assert told("GROUND004", "Drop `z_q`.", grounds, slot="action") == [
        "`z_q` is neither in the trace nor an API or setting; cite the id that holds the name, or say it without one. "
        "A setting is written with its value: `z_q=VALUE`"
    ]


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("It is `gemm.F1.time_ms`.", "gemm.F1.time_ms"),
        ("It is `ledger.span_ms`.", "ledger.span_ms"),
        ("It is `efficiency_pct`.", "gemm.F1.efficiency_pct"),
    ],
)
def test_an_evidence_id_in_backticks_is_told_as_what_it_is(text, cited, grounds):
    code = text.split("`")[1]

    assert told("GROUND004", text, grounds) == [
        f"`{code}` is an evidence id and no name: cite it, {{{{{cited}}}}}, without backticks"
    ]


def test_an_evidence_id_among_words_is_told_as_what_it_is(grounds):
    assert told("GROUND004", "It is ledger.span_ms that counts.", grounds) == [
        "`ledger.span_ms` is an evidence id and no name: cite it, {{ledger.span_ms}}"
    ]
