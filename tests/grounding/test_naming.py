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
