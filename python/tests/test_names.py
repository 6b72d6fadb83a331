"""Hooks under the names of TransformerLens 4, in models of both orders of norms."""

import json
import pathlib
import pickle

import numpy as np
import pytest

import phasor

TEXT = "Tom bit a dog."
# phasor's name for each hook of the bridge: in models of both orders of norms, and of one.
SAME = {
    "embed.hook_out": "hook_embed", "pos_embed.hook_out": "hook_pos_embed",
    "blocks.3.hook_in": "blocks.3.hook_resid_pre", "blocks.3.attn.q.hook_out": "blocks.3.attn.hook_q",
    "blocks.3.attn.o.hook_in": "blocks.3.attn.hook_z", "blocks.3.attn.o.hook_out": "blocks.3.hook_attn_out",
    "blocks.3.mlp.in.hook_out": "blocks.3.mlp.hook_pre", "blocks.3.mlp.out.hook_in": "blocks.3.mlp.hook_post",
    "blocks.3.mlp.hook_out": "blocks.3.hook_mlp_out",
}
POST = {
    "blocks.3.ln1.hook_in": "blocks.3.hook_resid_mid", "blocks.3.ln2.hook_in": "blocks.3.hook_resid_post",
    "blocks.3.hook_out": "blocks.4.hook_resid_pre", "blocks.3.ln2.hook_out": "blocks.4.hook_resid_pre",
    "blocks.3.attn.hook_in": "blocks.3.hook_resid_pre",
}
PRE = {
    "blocks.3.ln1.hook_in": "blocks.3.hook_resid_pre", "blocks.3.ln2.hook_in": "blocks.3.hook_resid_mid",
    "blocks.3.hook_mlp_in": "blocks.3.hook_resid_mid", "blocks.3.hook_out": "blocks.4.hook_resid_pre",
}
# Names of both conventions with the bridge's meaning, in post-norm models.
OTHER = {
    ("resid_post", 3): "blocks.3.hook_out", "blocks.3.hook_resid_mid": "blocks.3.ln2.hook_in",
    ("attn_out", -3): "blocks.3.ln1.hook_out", ("hook_attn_out", 3): "blocks.3.mlp.hook_in",
}


@pytest.fixture
def folder(encoder, model_folder):
    def make(order):
        config = json.loads((pathlib.Path(encoder.info["folder"]) / "config.json").read_text())
        return model_folder(config={**config, "norm_order": order})

    return make


@pytest.mark.parametrize("order, only", [("post", POST), ("pre", PRE)])
@pytest.mark.parametrize("names", ["hooked", "bridge"])
def test_names_of_the_bridge_always_read_what_they_mean(folder, order, only, names):
    made = folder(order)
    with phasor.Encoder(made, names=names) as encoder:
        _, cache = encoder.run_with_cache(TEXT)
        with phasor.Encoder(made) as hooked:
            _, values = hooked.run_with_cache(TEXT)
        for name, same in {**SAME, **only}.items():
            np.testing.assert_array_equal(cache[name], values[same])
            assert name in cache and (name in encoder.hook_names) == (names == "bridge")
        assert len(cache) == len(set(cache)) and set(cache) <= set(encoder.hook_names)
        for name in cache:
            cache[name]


def test_the_mlp_reads_the_norm_of_the_middle(encoder, weights):
    _, cache = encoder.run_with_cache(TEXT)
    for layer in range(6):
        x = cache["resid_mid", layer].astype(np.float64)
        scale = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        gamma, beta = (weights[f"blocks.{layer}.attn_norm.{part}"] for part in ("weight", "bias"))
        norm = (x - x.mean(-1, keepdims=True)) / scale * gamma + beta
        for name in ("normalized_resid_mid", "mlp_in"):
            np.testing.assert_allclose(cache[name, layer], norm, atol=1e-5)
        np.testing.assert_allclose(
            norm @ weights[f"blocks.{layer}.mlp.up.weight"].T + weights[f"blocks.{layer}.mlp.up.bias"],
            cache[f"blocks.{layer}.mlp.in.hook_out"], atol=1e-4,
        )


@pytest.mark.parametrize("names", ["hooked", "bridge"])
def test_a_name_of_the_bridge_without_a_hook_is_an_error(folder, names):
    with phasor.Encoder(folder("pre"), names=names) as encoder:
        _, cache = encoder.run_with_cache(TEXT)
        for name in ("blocks.3.ln1.hook_out", "blocks.3.mlp.hook_in", "blocks.3.mlp.gate.hook_out"):
            assert name not in cache and name not in encoder.hook_names
            with pytest.raises(phasor.InvalidArgument, match=f"no hook .*{name}"):
                encoder.run_with_cache(TEXT, name)


def test_names_that_differ_have_the_meaning_that_was_asked_for():
    with phasor.Encoder(names="bridge") as encoder, phasor.Encoder() as hooked:
        _, cache = encoder.run_with_cache(TEXT)
        _, values = hooked.run_with_cache(TEXT)
        for name, same in OTHER.items():
            np.testing.assert_array_equal(cache[name], cache[same])
            np.testing.assert_array_equal(cache[name], values[same])
            assert np.abs(cache[name] - values[name]).max() > 0.1
        # Without an embedding norm both mean the tokens.
        np.testing.assert_array_equal(cache["embed"], values["embed"])
        _, one = encoder.run_with_cache(TEXT, names_filter="blocks.2.hook_resid_post")
        assert {"blocks.2.hook_out", "blocks.2.hook_resid_post"} <= set(one)
        assert "blocks.2.hook_resid_mid" not in one and ("resid_mid", 2) not in one
        _, some = encoder.run_with_cache(TEXT, lambda name: name.endswith("ln1.hook_in"))
        np.testing.assert_array_equal(some["blocks.5.ln1.hook_in"], values["resid_mid", 5])
        assert ("resid_mid", 5) not in some
        _, all_blocks = encoder.run_with_cache(TEXT, ["resid_post", "attn.o.hook_out"])
        found = all_blocks["blocks.1.attn.o.hook_out"]
        np.testing.assert_array_equal(found, values["attn_out", 1])


def test_hooks_are_set_under_either_name():
    told = []

    def zero(value, hook):
        told.append(hook.name)
        return value * 0

    with phasor.Encoder() as hooked, phasor.Encoder(names="bridge") as encoder:
        want = hooked.forward(TEXT, fwd_hooks=[("blocks.2.hook_attn_out", zero)]).hidden
        for each in (hooked, encoder):
            got = each.forward(TEXT, fwd_hooks=[("blocks.2.attn.o.hook_out", zero)]).hidden
            np.testing.assert_array_equal(got, want)
        assert told == ["blocks.2.hook_attn_out", *["blocks.2.attn.o.hook_out"] * 2]


@pytest.mark.parametrize("names", ["hooked", "bridge"])
@pytest.mark.parametrize("order", ["post", "pre"])
def test_a_patch_by_the_name_that_a_function_is_told_changes_nothing(folder, order, names):
    with phasor.Encoder(folder(order), names=names) as encoder:
        output, cache = encoder.run_with_cache(TEXT)
        asked = {*(POST if order == "post" else PRE), *SAME, *cache}
        told, refused = set(), set()

        def patch(value, hook):
            told.add(hook.name)
            return cache[hook.name]

        for name in asked:
            try:
                patched = encoder.forward(TEXT, fwd_hooks=[(name, patch)]).hidden
            except phasor.InvalidArgument as error:
                assert "can be read, not changed" in str(error) and name.endswith("_in")
                refused.add(name)
                continue
            np.testing.assert_allclose(patched, output.hidden, atol=2e-5)
        assert told == asked - refused


@pytest.mark.parametrize("order", ["post", "pre"])
def test_what_reads_a_part_of_a_hook_cannot_be_changed(folder, order):
    names = ["attn.q.hook_in", "attn.k.hook_in", "attn.v.hook_in", "hook_mlp_in", "mlp.in.hook_in"]
    names += ["ln1.hook_in", "ln2.hook_in"] if order == "pre" else []
    with phasor.Encoder(folder(order)) as encoder:
        for name in names:
            with pytest.raises(phasor.InvalidArgument, match="read, not changed"):
                encoder.forward(TEXT, fwd_hooks=[(f"blocks.1.{name}", lambda value, hook: None)])


def test_short_keys_and_messages_have_the_names_that_were_asked_for():
    with phasor.Encoder(names="bridge") as encoder:
        _, cache = encoder.run_with_cache(TEXT)
        np.testing.assert_array_equal(cache["out", 3, "attn"], cache["blocks.3.attn.hook_out"])
        np.testing.assert_array_equal(cache["out", 3, "mlp"], cache["blocks.3.mlp.hook_out"])
        _, ragged = encoder.run_with_cache([TEXT, "It rains."])
        with pytest.raises(phasor.InvalidArgument, match="'blocks.2.ln2.hook_in'"):
            ragged["blocks.2.ln2.hook_in"]


@pytest.mark.parametrize("name", ["embeddinggemma", "electra"])
def test_what_phasor_sees_elsewhere_has_no_name_of_the_bridge(golden, name):
    absent = "embed_ln.hook_out" if name == "electra" else "blocks.1.attn.o.hook_out"
    with phasor.Encoder(golden(name), names="bridge") as encoder:
        _, cache = encoder.run_with_cache(np.arange(5, 9))
        assert absent not in cache


def test_the_setting_is_kept_by_copies_and_checked():
    with phasor.Encoder(names="bridge") as encoder:
        copied = pickle.loads(pickle.dumps(encoder))
        assert copied.hook_names == encoder.hook_names and "blocks.0.hook_out" in copied.hook_names
    with pytest.raises(phasor.InvalidArgument, match="hooked, bridge"):
        phasor.Encoder(names="transformer_lens")
