from __future__ import annotations

import json

import pytest

from rooftrace.errors import InternalError
from rooftrace.fusion.compositions import Alphabet, find_all, find_longest, load_compositions
from rooftrace.pack import KNOWLEDGE

FILES = sorted((KNOWLEDGE / "fusion").glob("*.json"))
BY_ID = {composition.identity: composition for composition in load_compositions()}


def spans(identity, words, *, loose=False):
    alphabet = Alphabet(loose=loose)
    listed = [None if word == "|" else word for word in words.split()]
    text = alphabet.encode(listed, range(len(listed)))
    if BY_ID[identity].file.kind == "loop":
        return list(find_longest(BY_ID[identity], text, alphabet, [(0, len(text))]))
    return list(find_all(BY_ID[identity], text, alphabet))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_names_its_composition_and_a_pattern_has_words_for_it(path):
    assert json.loads(path.read_bytes())["id"] == path.stem
    assert (KNOWLEDGE / "patterns" / "fusion" / path.name).is_file()


@pytest.mark.parametrize(
    ("identity", "words"),
    [
        ("attention_core", "bmm muls add softmax dropout bmm"),
        ("attention_core", "muls muls bmm softmax bmm"),
        ("attention_core", "bmm divs masked_fill cast softmax cast copy bmm"),
        ("attention_backward", "bmm bmm softmax_backward muls bmm bmm"),
        ("rms_norm", "cast pow mean adds rsqrt mul cast mul"),
        ("rms_norm", "pow mean adds rsqrt mul mul"),
        ("rms_norm", "cast pow mean adds rsqrt mul cast adds mul cast"),
        ("layer_norm", "mean sub pow mean adds sqrt div mul add"),
        ("layer_norm", "mean var sub adds rsqrt mul mul add"),
        ("batch_norm", "sub adds rsqrt mul mul add"),
        ("group_norm", "mean var sub adds rsqrt mul mul add"),
        ("add_norm", "add layer_norm"),
        ("rope", "mul neg cat mul add mul neg cat mul add"),
        ("swiglu", "silu mm mul"),
        ("geglu", "gelu mm mul"),
        ("gelu", "muls pow muls add muls tanh adds mul"),
        ("gelu", "muls divs erf adds mul"),
        ("quick_gelu", "muls sigmoid mul"),
        ("silu", "sigmoid mul"),
        ("gemm_epilogue", "mm add relu"),
        ("conv_epilogue", "conv add relu"),
        ("add_act", "add relu"),
        ("dropout_add", "dropout add"),
        ("repeated_casts", "cast copy cast"),
        ("adam_loop", "muls lerp muls addcmul sqrt divs adds addcdiv muls lerp"),
        ("optimizer_loop", "muls add adds muls add adds muls add"),
        ("gradient_clipping", "norm norm norm norm cat norm"),
        ("softmax", "amax sub exp sum div"),
        ("cross_entropy", "log_softmax nll_loss"),
        ("quantise", "divs adds round clamp cast"),
        ("quantise", "abs amax divs div round clamp cast"),
        ("permute_pair", "copy copy"),
        ("rms_norm_backward", "mul mul sum cast mul mul sum muls pow mul divs pow muls mul add cast"),
        ("rms_norm_backward", "mul sum mul cast mul mul sum pow muls mul divs muls mul add cast"),
    ],
)
def test_a_composition_is_recognised_as_a_whole(identity, words):
    assert (0, len(words.split()) - 1) in spans(identity, words)


@pytest.mark.parametrize(
    ("identity", "words"),
    [
        ("rms_norm", "pow mean adds rsqrt"),
        ("rms_norm", "pow mean | adds rsqrt mul"),
        ("swiglu", "silu add"),
        ("rope", "mul neg cat mul"),
        ("attention_core", "bmm muls bmm"),
        ("softmax", "sub exp div"),
        ("batch_norm", "batch_norm relu"),
    ],
)
def test_part_of_a_composition_is_none(identity, words):
    assert spans(identity, words) == []


def test_overlapping_stretches_are_all_found():
    assert spans("silu", "sigmoid mul sigmoid mul") == [(0, 1), (2, 3)]
    assert spans("repeated_casts", "cast cast cast") == [(0, 1), (0, 2), (1, 2)]


def test_without_shapes_numbers_and_tensors_are_not_told_apart():
    assert spans("rms_norm", "copy pow mean add rsqrt mul copy mul", loose=True)[:3] == [
        (0, 5),
        (0, 6),
        (0, 7),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "mystery"}, "composition `x.json` does not match its schema"),
        ({"sequences": ["cast+"]}, "composition `x.json`: only a loop may repeat without bound"),
        ({"sequences": ["cast ^ mul"]}, "composition `x.json`: `^ mul` is no word or sign"),
    ],
)
def test_a_broken_file_is_named(tmp_path, change, message):
    record = json.loads((KNOWLEDGE / "fusion" / "rms_norm.json").read_bytes()) | change
    (tmp_path / "x.json").write_text(json.dumps(record))

    with pytest.raises(InternalError) as error:
        load_compositions(tmp_path)

    assert message in str(error.value)
