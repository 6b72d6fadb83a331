"""The calls of scripts that use TransformerLens 4 (compared with 4.3), on both packages; the same must come out."""

import os
import warnings

import numpy as np
import pytest

import phasor
from test_real import model  # noqa: F401  (a fixture)

TEXT = "A man is eating in Paris."


@pytest.fixture(scope="module")
def both(model):  # noqa: F811
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the model is a folder
    bridge = pytest.importorskip("transformer_lens.model_bridge").TransformerBridge
    return bridge.boot_transformers(model, device="cpu"), phasor.Encoder(model, names="bridge")


@pytest.fixture(scope="module")
def caches(both):
    theirs, ours = both
    return theirs.run_with_cache(TEXT)[1], ours.run_with_cache(TEXT)[1]


def assert_close(found, want):
    want = want.detach().numpy()
    assert found.shape == want.shape
    assert np.abs(found - want).max() <= 2e-6 * max(1, np.abs(want).max())


def test_every_name_that_both_have(caches):
    theirs, ours = caches
    names = [name for name in ours if name in theirs and not name.endswith("attn_scores")]
    assert len(names) == 216
    for name in names:
        assert_close(ours[name], theirs[name])
    for short in (("resid_post", 3), ("resid_pre", -1), ("attn_out", 0), ("k", 2), "embed"):
        assert_close(ours[short], theirs[short])


def test_names_of_the_bridge_alone_need_no_setting(model, caches):  # noqa: F811
    with phasor.Encoder(model) as encoder:
        _, hooked = encoder.run_with_cache(TEXT)
        for name in caches[1]:
            if name not in encoder.hook_names:
                np.testing.assert_array_equal(hooked[name], caches[1][name])


def test_tokens_and_sizes(both):
    theirs, ours = both
    np.testing.assert_array_equal(ours.to_tokens(TEXT), theirs.to_tokens(TEXT))
    assert ours.to_str_tokens(TEXT) == theirs.to_str_tokens(TEXT)
    for name in ("n_layers", "n_heads", "d_model", "d_head", "d_mlp", "d_vocab", "n_ctx"):
        assert getattr(ours.cfg, name) == getattr(theirs.cfg, name), name


def test_weights(both):
    theirs, ours = both
    np.testing.assert_array_equal(ours.W_E, theirs.W_E.detach())
    np.testing.assert_array_equal(ours.W_pos, theirs.W_pos.detach())
    for block, want in zip(ours.blocks, theirs.blocks):
        for part, found in vars(block).items():
            for name, tensor in vars(found).items():
                np.testing.assert_array_equal(tensor, getattr(getattr(want, part), name).detach())
        assert len(vars(block.attn)) == 8 and len(vars(block.mlp)) == 4


def test_stacks(caches):
    theirs, ours = caches
    for name in ("z", "pattern", "mlp_out", "resid_post"):
        assert_close(ours.stack_activation(name), theirs.stack_activation(name))
    for arguments in ({}, {"layer": 2, "mlp_input": True}, {"layer": 3, "incl_mid": True}):
        found, labels = ours.accumulated_resid(**arguments, return_labels=True)
        want, names = theirs.accumulated_resid(**arguments, return_labels=True)
        assert labels == names
        assert_close(found, want)
    # TransformerLens' parts of a post-norm model are those before its norms.
    _, labels = ours.decompose_resid(3, return_labels=True)
    _, names = theirs.decompose_resid(3, return_labels=True)
    assert [label for label in labels if label not in ("token_type_embed", "bias")] == names


def test_norms_of_stacks(caches):
    for arguments in (
        {"layer": 2}, {"layer": 3, "mlp_input": True}, {"layer": 2, "pos_slice": (1, 4)},
        {"layer": 5, "mlp_input": True, "pos_slice": -1, "batch_slice": 0},
    ):
        where = arguments.get("pos_slice", slice(None))
        where = slice(*where) if isinstance(where, tuple) else where
        want, found = (
            each.apply_ln_to_stack(each.stack_activation("mlp_out")[:, :, where], **arguments)
            for each in caches
        )
        assert_close(found, want)


def test_a_run_that_stops(both, caches):
    theirs, ours = both
    for layer in (0, 2, -1):
        (want, their_cache), (found, our_cache) = (
            each.run_with_cache(TEXT, stop_at_layer=layer) for each in (theirs, ours)
        )
        assert_close(found, want)
        assert {name for name in our_cache if name in caches[0]} <= set(their_cache)


@pytest.mark.parametrize("name", ["attn.hook_z", "attn.o.hook_out", "hook_mlp_out", "attn.v.hook_out", "ln1.hook_in"])
def test_hooks_change_the_same(both, name):
    def less(value, hook):
        value[:, 2:4] = value[:, 2:4] * 0.5
        return value

    cached = []
    for each in both:
        with each.hooks(fwd_hooks=[(f"blocks.2.{name}", less)]):
            cached.append(each.run_with_cache(TEXT)[1]["blocks.5.hook_out"])
    assert_close(cached[1], cached[0])


def test_bertviz_draws_patterns_without_warnings(both):
    bertviz, torch = pytest.importorskip("bertviz"), pytest.importorskip("torch")
    encoder = both[1]
    _, cache = encoder.run_with_cache(TEXT, names_filter="pattern")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        attention = [torch.tensor(cache["pattern", i]) for i in range(encoder.cfg.n_layers)]
    for view in (bertviz.head_view, bertviz.model_view):
        page = view(attention, encoder.to_str_tokens(TEXT), html_action="return").data
        assert "paris" in page and len(page) > 50_000
