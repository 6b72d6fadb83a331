"""Parts of the residual stream: they add up to the state, in models of every kind."""

import json
import pathlib

import numpy as np
import pytest

import phasor

TEXT = "Tom bit a dog."
GOLDEN = ["albert", "m2m100", "t5-encoder", "xlm-roberta", "modernbert", "nomic-bert", "deberta-v2"]
GOLDEN += ["embeddinggemma", "t5gemma"]  # with norms on branches


@pytest.fixture(scope="module")
def cache(encoder):
    return encoder.run_with_cache(TEXT)[1]


def state(cache, info, layer, mlp_input):
    last = layer == info["sizes"]["layers"]
    if info["norm"]["order"] == "post":
        name = "normalized_resid_post" if last else "normalized_resid_mid" if mlp_input else "resid_pre"
    else:
        name = "resid_post" if last else "resid_mid" if mlp_input else "resid_pre"
    return cache[name, layer - last]


def check_sums(encoder, text):
    _, cache = encoder.run_with_cache(text)
    layers = encoder.cfg.n_layers
    for layer, mlp_input in [*((l, m) for l in range(layers) for m in (False, True)), (layers, False)]:
        want = state(cache, encoder.info, layer, mlp_input)
        for parts, labels in (
            cache.decompose_resid(layer, mlp_input, return_labels=True),
            cache.get_full_resid_decomposition(layer, mlp_input, return_labels=True),
            cache.get_full_resid_decomposition(layer, mlp_input, False, return_labels=True),
        ):
            assert len(parts) == len(labels) == len(set(labels)) and parts.dtype == np.float32
            assert np.abs(parts.sum(0) - want).max() < 1e-5 * np.abs(want).max()
    np.testing.assert_array_equal(cache.decompose_resid(), cache.decompose_resid(layers))
    np.testing.assert_array_equal(cache.decompose_resid(-1), cache.decompose_resid(layers))


@pytest.mark.parametrize("order", ["post", "pre"])
def test_parts_add_up_to_the_state(encoder, model_folder, order):
    config = json.loads((pathlib.Path(encoder.info["folder"]) / "config.json").read_text())
    with phasor.Encoder(model_folder(config={**config, "norm_order": order})) as made:
        check_sums(made, TEXT)


@pytest.mark.parametrize("name", GOLDEN)
def test_parts_add_up_in_models_of_every_kind(golden, name):
    with phasor.Encoder(golden(name)) as encoder:
        check_sums(encoder, np.arange(5, 14))


def test_parts_go_through_the_norms_as_linear_maps(cache, weights):
    parts, labels = cache.decompose_resid(1, return_labels=True)
    assert labels == ["embed", "pos_embed", "0_attn_out", "0_mlp_out", "bias"]
    x = cache["resid_post", 0].astype(np.float64)
    scale = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    gamma, beta = weights["blocks.0.mlp_norm.weight"], weights["blocks.0.mlp_norm.bias"]
    out = cache["mlp_out", 0].astype(np.float64)
    want = (out - out.mean(-1, keepdims=True)) / scale * gamma
    np.testing.assert_allclose(parts[3], want, atol=1e-5)
    # What comes before the first norm of a block is what was added.
    parts, labels = cache.decompose_resid(0, return_labels=True)
    assert labels == ["embed", "pos_embed"]
    np.testing.assert_array_equal(parts, [cache["embed"], cache["pos_embed"]])


def test_labels_and_choices(cache):
    _, labels = cache.get_full_resid_decomposition(1, expand_neurons=False, return_labels=True)
    heads = [f"L0H{i}" for i in range(4)]
    assert labels == [*heads, "0_mlp_out", "embed", "pos_embed", "bias"]
    _, labels = cache.get_full_resid_decomposition(1, mlp_input=True, return_labels=True)
    neurons = [f"L0N{i}" for i in range(512)]
    assert labels == [*heads, *(f"L1H{i}" for i in range(4)), *neurons, "embed", "pos_embed", "bias"]
    whole, all_labels = cache.decompose_resid(2, return_labels=True)
    for mode in ("attn", "mlp"):
        some, labels = cache.decompose_resid(2, mode=mode, incl_embeds=False, return_labels=True)
        assert labels == [f"{i}_{mode}_out" for i in range(2)]
        np.testing.assert_array_equal(some, whole[[all_labels.index(label) for label in labels]])
        assert len(cache.decompose_resid(2, mode=mode)) == 4
    with pytest.raises(phasor.InvalidArgument, match="mode"):
        cache.decompose_resid(mode="heads")
    for wrong in ({"layer": 7}, {"layer": -2}, {"layer": 6, "mlp_input": True}):
        with pytest.raises(phasor.InvalidArgument, match="0 to 5"):
            cache.decompose_resid(**wrong)


def test_states_are_stacked(cache):
    stack, labels = cache.accumulated_resid(return_labels=True)
    assert labels == [*(f"{i}_pre" for i in range(6)), "final_post"]
    np.testing.assert_array_equal(stack[-1], cache["resid_post", 5])
    stack, labels = cache.accumulated_resid(2, incl_mid=True, mlp_input=True, return_labels=True)
    assert labels == ["0_pre", "0_mid", "1_pre", "1_mid", "2_pre", "2_mid"]
    np.testing.assert_array_equal(stack[3], cache["resid_mid", 1])
    np.testing.assert_array_equal(stack[4], cache["resid_pre", 2])
    assert len(cache.accumulated_resid(2, mlp_input=True)) == 4
    assert cache.stack_activation("pattern").shape == (6, 1, 4, 7, 7)
    np.testing.assert_array_equal(cache.stack_activation("q", 2, "attn")[1], cache["q", 1])


def test_texts_and_their_caches(encoder, cache):
    _, both = encoder.run_with_cache([TEXT, "Ann bit a dog."])
    parts = both.decompose_resid(3)
    assert parts.shape == (9, 2, 7, 128)
    np.testing.assert_allclose(parts[:, 0], cache.decompose_resid(3)[:, 0], atol=1e-4)
    np.testing.assert_allclose(both.text(0).decompose_resid(3), parts[:, 0], atol=1e-5)


def test_a_changed_run_has_no_such_parts(encoder):
    changed = {"fwd_hooks": [("blocks.2.hook_resid_pre", lambda value, hook: value * 2)]}
    for options in (changed, {"cut_residual": 1}):
        _, cache = encoder.run_with_cache(TEXT, **options)
        cache.decompose_resid(1)
        with pytest.raises(phasor.InvalidArgument, match="do not add up"):
            cache.decompose_resid(3)
    _, some = encoder.run_with_cache(TEXT, ["attn_out", "embed"])
    with pytest.raises(KeyError, match="mlp_out was not recorded"):
        some.decompose_resid(1)
