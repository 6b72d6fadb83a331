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


@pytest.mark.parametrize("name", ["m2m100", "eurobert", "modernbert"])
def test_stacks_pass_norms_as_the_state_did(golden, name):
    with phasor.Encoder(golden(name)) as encoder:
        output, cache = encoder.run_with_cache(np.arange(5, 14))
        gamma, beta = (encoder.weights.get(f"final_norm.{part}", 0) for part in ("weight", "bias"))
        parts = cache.decompose_resid()
        normed = cache.apply_ln_to_stack(parts)
        np.testing.assert_allclose(normed.sum(0)[0] * gamma + beta, output[0], atol=1e-5)
        for part in (-1, [1, 5], (2, 6)):
            where = slice(*part) if isinstance(part, tuple) else part
            found = cache.apply_ln_to_stack(parts[:, :, where], pos_slice=part)
            np.testing.assert_array_equal(found, normed[:, :, where])
        np.testing.assert_array_equal(cache.apply_ln_to_stack(parts, batch_slice=0), normed[:, 0])
        np.testing.assert_array_equal(cache.text(0).apply_ln_to_stack(parts[:, 0]), normed[:, 0])
        # Each state through the norm by itself, as the logit lens wants it.
        lens = cache.apply_ln_to_stack(cache.accumulated_resid(), recompute_ln=True)
        np.testing.assert_allclose(lens[-1, 0], output[0], atol=1e-5)


def test_stacks_pass_norms_after_attention_and_mlp(encoder, cache, weights):
    gamma, beta = weights["blocks.1.attn_norm.weight"], weights["blocks.1.attn_norm.bias"]
    parts = cache.decompose_resid(1)
    both = np.concatenate([parts, cache["attn_out", 1][None]])
    found = cache.apply_ln_to_stack(both, 1).sum(0) * gamma + beta
    np.testing.assert_allclose(found, cache["normalized_resid_mid", 1], atol=1e-4)
    with pytest.raises(phasor.InvalidArgument, match="layer 5 and mlp_input=True"):
        cache.apply_ln_to_stack(parts)
    found = cache.apply_ln_to_stack(cache["resid_post", 5], 5, True)
    gamma, beta = weights["blocks.5.mlp_norm.weight"], weights["blocks.5.mlp_norm.bias"]
    np.testing.assert_allclose(found * gamma + beta, cache["normalized_resid_post", 5], atol=1e-5)


def test_parts_of_logits(golden, cache):
    with phasor.Encoder(golden("eurobert")) as encoder:
        output, found = encoder.run_with_cache([list(range(5, 14)), list(range(7, 16))])
        parts = found.decompose_resid()
        logits = np.stack([encoder.mlm_logits(states) for states in output])
        ids = np.arange(18).reshape(2, 9)
        for tokens, want in (
            (7, logits[:, :, 7]), ([3, 4], logits[[0, 1], :, [3, 4]]),
            (ids, np.take_along_axis(logits, ids[..., None], -1)[..., 0]),
        ):
            np.testing.assert_allclose(found.logit_attrs(parts, tokens).sum(0), want, atol=1e-5)
        less = found.logit_attrs(parts[:, :, -1], 7, 9, pos_slice=-1)
        np.testing.assert_allclose(less.sum(0), (logits[..., 7] - logits[..., 9])[:, -1], atol=1e-5)
    with pytest.raises(NotImplementedError, match="not linear"):
        cache.logit_attrs(cache.decompose_resid(), 7)
    with phasor.Encoder(golden("modernbert")) as encoder:
        _, without = encoder.run_with_cache([5, 6])
        with pytest.raises(NotImplementedError, match="is missing"):
            without.logit_attrs(without.decompose_resid(), 7)


def test_a_run_may_end_with_the_state_that_a_block_reads(encoder, cache):
    for stop, block in ((0, 0), (3, 3), (-1, 5)):
        state, stopped = encoder.run_with_cache(TEXT, stop_at_layer=stop)
        np.testing.assert_array_equal(state, cache["resid_pre", block])
        assert len(stopped) == len(stopped.text(0)) == 3 + 15 * block
    state, stopped = encoder.run_with_cache(TEXT, "pattern", stop_at_layer=2, return_type=None)
    assert state is None and list(stopped) == [f"blocks.{i}.attn.hook_pattern" for i in range(2)]
    state, _ = encoder.run_with_cache(TEXT, stop_at_layer=6)
    np.testing.assert_array_equal(state, cache["normalized_resid_post", 5])
    for wrong in (-7, 7):
        with pytest.raises(phasor.InvalidArgument, match="0 to 5"):
            encoder.run_with_cache(TEXT, stop_at_layer=wrong)


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
