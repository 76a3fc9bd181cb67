"""Which model ran, from names and shapes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rooftrace.analyzers.known_models import Sizes, guess
from rooftrace.analyzers.model import identify
from rooftrace.contracts.model_evidence import ModelEvidence, evidence_lines
from rooftrace.trace import load
from rooftrace.workflow import AnalyzeOptions
from rooftrace.workflow.prepare import prepare_workload
from tests.analyzers.counted import calls_of
from tests.support.trace_builder import TraceBuilder

TRACES = Path(os.environ.get("ROOFTRACE_TRACES") or Path(__file__).resolve().parents[3] / "shared" / "traces")
HEAD = {"tool_version": "1", "source_sha256": "0" * 64}
BF16 = ["c10::BFloat16"] * 2


def evidence_of(builder):
    workload = prepare_workload(builder.build(), AnalyzeOptions(platform="h100-sxm")).workload
    return ModelEvidence(**identify(workload), **HEAD)


class Net(TraceBuilder):
    """Forward calls one after the other, each under a path of modules."""

    def __init__(self):
        super().__init__()
        self.at = 0.0

    def call(self, path, op, *shapes, types=None, concrete=None):
        """One op that launches one kernel, inside modules given from outside in."""
        for depth, module in enumerate(path):
            self.python(f"nn.Module: {module}", self.at + 0.1 * depth, 9 - 0.2 * depth)
        dims = [list(shape) for shape in shapes]
        self.op(op, self.at + 4, 2, dims=dims, types=types or ["c10::BFloat16"] * len(dims), concrete=concrete)
        self.kernel("k", self.at + 20, 5, correlation=self.launch(ts=self.at + 5, dur=0.5))
        self.at += 10


def decoder(layers=3, root="MyLM_0"):
    """Words, then layers of attention with 4 heads of 32 and a gated block, then a norm and a head."""
    net = Net()
    net.device()
    net.call([root, "Embedding_0"], "aten::embedding", (32_000, 128), (2, 17), types=["c10::BFloat16", "long int"])
    for number in range(layers):
        layer = [root, f"MyLayer_{number}"]
        net.call([*layer, f"MyAttention_{number}", f"Linear_{number}"], "aten::linear", (2, 17, 128), (128, 128))
        heads = [(2, 4, 17, 32)] * 3
        net.call([*layer, f"MyAttention_{number}"], "aten::scaled_dot_product_attention", *heads)
        net.call([*layer, f"MyMLP_{number}", "Linear_8"], "aten::linear", (2, 17, 128), (512, 128))
        net.call([*layer, f"MyMLP_{number}", "Linear_9"], "aten::linear", (2, 17, 512), (128, 512))
    net.call([root, "LayerNorm_0"], "aten::layer_norm", (2, 17, 128), (128,), (128,))
    return net


def test_sizes_of_a_decoder_are_read_from_its_shapes():
    summary = evidence_of(decoder()).summary

    assert summary == {
        "model_class": "MyLM",
        "layer_class": "MyLayer",
        "layers_count": 3,
        "hidden_size": 128,
        "intermediate_size": 512,
        "heads_count": 4,
        "head_size": 32,
        "vocabulary_size": 32_000,
        "batch_size": 2,
        "sequence_length": 17,
        "precision": "bfloat16",
        "use": "inference",
    }


def test_heads_of_written_out_attention_follow_from_the_product_of_queries_and_keys():
    """2 samples of 4 heads: 8 products of 17 x 32 with 32 x 17; 128 / 32 = 4 heads."""
    net = Net()
    net.call(["MyLM_0", "MyLayer_0", "Linear_0"], "aten::linear", (2, 17, 128), (128, 128))
    net.call(["MyLM_0", "MyLayer_0", "MyAttention_0"], "aten::bmm", (8, 17, 32), (8, 32, 17))
    net.call(["MyLM_0", "MyLayer_0", "MyAttention_0"], "aten::bmm", (8, 17, 17), (8, 17, 32))

    summary = evidence_of(net).summary
    assert (summary["heads_count"], summary["head_size"]) == (4, 32)


def test_experts_are_as_many_as_the_router_tells_apart():
    net = decoder()
    net.call(["MyLM_0", "MyLayer_0", "MyMoE_0", "MyRouter_0", "Linear_50"], "aten::linear", (2, 17, 128), (8, 128))
    sizes = [(2, 17, 8), (), (), (), ()]
    types = ["c10::BFloat16", "Scalar", "Scalar", "Scalar", "Scalar"]
    net.call(["MyLM_0", "MyLayer_0", "MyMoE_0"], "aten::topk", *sizes, types=types, concrete=["", "2", "-1", "1", "1"])

    summary = evidence_of(net).summary
    assert (summary["experts_count"], summary["experts_per_token"]) == (8, 2)


def test_a_convolutional_network_has_an_image_and_no_hidden_size():
    net = Net()
    net.call(["ResNet_0", "Conv2d_0"], "aten::conv2d", (10, 3, 224, 224), (64, 3, 7, 7))
    for block in range(8):
        path = ["ResNet_0", f"Sequential_{block // 2}", f"BasicBlock_{block}", f"Conv2d_{block + 1}"]
        net.call(path, "aten::conv2d", (10, 64, 56, 56), (64, 64, 3, 3))

    evidence = evidence_of(net)
    assert (evidence.summary["image_size"], evidence.summary["batch_size"]) == (224, 10)
    assert "hidden_size" not in evidence.summary
    assert (evidence.summary["layer_class"], evidence.summary["layers_count"]) == ("BasicBlock", 8)
    assert (evidence.guess.name, evidence.guess.confidence) == ("ResNet-18", "high")


def test_a_wrapper_is_no_model_and_what_runs_again_is_not_another():
    net = decoder(root="MyLM_0")
    for number in range(3):
        path = ["DistributedDataParallel_0", "MyLM_0", f"MyLayer_{number}"]
        net.call(path, "aten::linear", (2, 17, 128), (128, 128))
        net.call(["Sequential_9", f"MyLayer_{number}"], "aten::linear", (2, 17, 128), (128, 128))

    evidence = evidence_of(net)
    assert [part.name for part in evidence.components] == ["MyLM"]
    assert evidence.summary["wrapper"] == "DistributedDataParallel"


def test_networks_beside_each_other_are_told_apart_most_time_first():
    net = decoder(layers=6, root="MainNet_0")
    net.call(["SideNet_0", "SideLayer_0", "Linear_90"], "aten::linear", (1, 5, 64), (64, 64))
    net.call(["SideNet_0", "SideLayer_1", "Linear_91"], "aten::linear", (1, 5, 64), (64, 64))

    parts = evidence_of(net).components
    assert [(part.name, part.layers_count, part.hidden_size) for part in parts] == [
        ("MainNet", 6, 128),
        ("SideNet", 2, 64),
    ]
    # 6 layers of 4 calls, a table and a norm: 26 kernels against 2, of 5 us each; 26 / 28 = 92.86 %
    assert [part.gpu_time_pct for part in parts] == [92.86, 7.14]


def test_the_layer_is_what_repeats_with_most_modules_below_it():
    """Two layers of 4 modules, itself and three that hold one, are 8; three of 2 are 6."""
    net = Net()
    for number in range(2):
        for part in ("Query_0", "Key_0", "Value_0"):
            net.call(["Net_0", f"Layer_{number}", part, "Linear_0"], "aten::linear", (2, 64), (64, 64))
    for number in range(3):
        net.call(["Net_0", f"Stage_{number}", "Inner_0", "Linear_0"], "aten::linear", (2, 64), (64, 64))

    summary = evidence_of(net).summary
    assert (summary["layer_class"], summary["layers_count"]) == ("Layer", 2)


def test_of_layers_with_as_many_modules_below_the_outer_one_is_it_and_containers_are_looked_through():
    """Two blocks in lists hold two pairs each: 2 of 4 modules, itself and a list of two, before 2 of 1 in each."""
    net = Net()
    for number in range(2):
        for inner in range(2):
            path = ["Net_0", f"ModuleList_{number}", f"Outer_{number}", "Sequential_0", f"Inner_{inner}", "Linear_0"]
            net.call(path, "aten::linear", (2, 64), (64, 64))

    summary = evidence_of(net).summary
    assert (summary["layer_class"], summary["layers_count"]) == ("Outer", 2)


@pytest.mark.parametrize(
    "path_of",
    [
        pytest.param(lambda number, half: [f"Net{number}_{half}", "Linear_0"], id="networks"),
        pytest.param(lambda number, half: ["Net_0", f"Layer{number}_{half}", "Linear_0"], id="classes of layers"),
    ],
)
def test_the_cost_of_naming_the_model_grows_with_its_classes_and_not_with_their_pairs(path_of):
    def calls(count):
        net = Net()
        for number in range(count):
            for half in (0, 1):
                net.call(path_of(number, half), "aten::linear", (2, 64), (64, 64))
        workload = prepare_workload(net.build(), AnalyzeOptions()).workload
        return calls_of(lambda: identify(workload))

    few, many = calls(50), calls(200)

    assert many < 5 * few  # four times the classes


def test_without_modules_a_frequent_width_is_not_taken_for_a_size():
    net = Net()
    net.call([], "aten::linear", (64, 256), (96, 256))

    evidence = evidence_of(net)
    assert set(evidence.summary) <= {"precision", "use"}
    assert (evidence.guess.name, evidence.guess.confidence) == ("unknown model", "low")


def test_names_are_data_and_cut_to_size():
    net = Net()
    net.call(["x" * 5_000 + "\n`{{evil}}`_0", "y_0", "Linear_0"], "aten::linear", (64, 256), (96, 256))

    evidence = evidence_of(net)
    assert max(len(line) for line in evidence_lines(evidence)) < 1_000
    assert "\n" not in evidence.summary["model_class"]


@pytest.mark.parametrize(
    ("classes", "sizes", "name", "confidence"),
    [
        (["BertModel"], Sizes(layers=12, hidden=768, heads=12), "BERT base", "high"),
        (["BertModel"], Sizes(layers=12, hidden=700), "BERT", "medium"),
        (["BertModel"], Sizes(layers=12), "BERT", "medium"),
        (["DistilBertModel"], Sizes(layers=6, hidden=768), "DistilBERT base", "high"),
        (["LlamaModel"], Sizes(layers=32, hidden=4096, vocabulary=128_256), "Llama 3 8B", "high"),
        (["LlamaModel"], Sizes(layers=32, hidden=4096), "Llama", "medium"),
        (["MyNet"], Sizes(vocabulary=201_088, hidden=2880), "GPT-OSS", "low"),
        (["MyNet"], Sizes(vocabulary=201_088, hidden=2880, layers=36), "GPT-OSS 120B", "low"),
        (["MyNet"], Sizes(), "MyNet", "low"),
        ([], Sizes(), "unknown model", "low"),
    ],
)
def test_the_guess_is_as_sure_as_names_and_sizes_allow(classes, sizes, name, confidence):
    found = guess(classes=classes, sources=[], sizes=sizes, is_training=False)

    assert (found["name"], found["confidence"]) == (name, confidence)


def test_a_source_file_names_the_family_where_no_class_does():
    found = guess(
        classes=[], sources=["vllm/model_executor/models/gpt_oss.py"], sizes=Sizes(hidden=2880), is_training=False
    )

    assert (found["name"], found["confidence"]) == ("GPT-OSS", "medium")


# Real traces: name, class, layers, hidden size, heads, vocabulary, batch, sequence

REAL = {
    "h100/gaunernst_bert-small-uncased__1016001": ("BERT small", "BertLMHeadModel", 4, 512, 8, 30_522, 1, 141),
    "mi300/Qwen_Qwen1.5-0.5B-Chat__1016005": ("Qwen1.5 0.5B", "Qwen2Model", 24, 1024, 16, 151_936, 16, 559),
    "h100/Falconsai_nsfw_image_detection__1016002": ("ViT base", "ViTModel", 12, 768, 12, None, 4, 197),
    "h100/facebook_timesformer-base-finetuned-k400__1016002": (
        *("TimeSformer base", "TimesformerForVideoClassification", 12, 768, 12, None, 1, 25_089),
    ),
    "h100/google_owlv2-large-patch14-ensemble__1016001": (
        *("OWLv2 large", "Owlv2ForObjectDetection", 24, 1024, 16, 49_408, 1, 5_185),
    ),
    "serving/xdit_sd_3.5/profile_trace_rank_0": (
        *("Stable Diffusion 3.5 Large", "SD3Transformer2DModel", None, 2432, 38, None, 2, 4_429),
    ),
    "nvidia/a100_switch_transformer": ("Switch Transformer", "SwitchTransformer", 10, 1024, 8, 100_000, 8, 128),
    "mi300/resnet_act_checkpoint": ("ResNet-18", "ResNet", 8, None, None, None, 10, None),
    "serving/vllm_decode_full/graph_execution": ("GPT-OSS", None, None, 2880, None, 201_088, 32, None),
}
SHOWN = (
    "model_class",
    "layers_count",
    "hidden_size",
    "heads_count",
    "vocabulary_size",
    "batch_size",
    "sequence_length",
)


@pytest.mark.real_traces
@pytest.mark.parametrize("name", REAL, ids=lambda name: name.rpartition("/")[2].split("__")[0])
def test_the_model_of_a_real_trace(name):
    path = TRACES / f"{name}.json.gz"
    if not path.is_file():
        pytest.skip(f"no {name} under the traces; set ROOFTRACE_TRACES")
    workload = prepare_workload(load(path)[0], AnalyzeOptions()).workload

    evidence = ModelEvidence(**identify(workload), **HEAD)

    assert (evidence.guess.name, *(evidence.summary.get(key) for key in SHOWN)) == REAL[name]
