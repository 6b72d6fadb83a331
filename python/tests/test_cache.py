"""Runs that record: run_with_cache, positions, position_vectors."""

import numpy as np
import pytest

import phasor


def test_everything_has_its_shape(encoder, texts):
    output, cache = encoder.run_with_cache(texts[0])
    t = len(output.token_ids)
    for name, value in cache.items():
        part = name.split(".")[-1]
        if part in ("hook_pattern", "hook_attn_scores"):
            assert value.shape == (1, 4, t, t), name
        elif part in ("hook_q", "hook_k", "hook_v", "hook_z"):
            assert value.shape == (1, t, 4, 32), name
        elif name.endswith(("mlp.hook_pre", "mlp.hook_post")):
            assert value.shape == (1, t, 512), name
        else:
            assert value.shape == (1, t, 128), name
        assert value.dtype == np.float32 and not value.flags.writeable
    assert set(cache) < set(encoder.hook_names)
    assert len(cache) == len(list(cache)) == 3 + 6 * 15
    for absent in ("hook_token_type_embed", "blocks.0.attn.hook_rot_q", "ln_final.hook_normalized"):
        assert absent in encoder.hook_names and absent not in cache


def test_recorded_values_belong_together(encoder, texts, weights):
    output, cache = encoder.run_with_cache(texts[0])
    np.testing.assert_allclose(cache["pattern", 3].sum(-1), 1, atol=1e-5)
    scores = cache["attn_scores", 3].astype(np.float64)
    exp = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(cache["pattern", 3], exp / exp.sum(-1, keepdims=True), atol=1e-5)
    z = np.einsum("bhij,bjhd->bihd", cache["pattern", 3], cache["v", 3])
    np.testing.assert_allclose(cache["z", 3], z, atol=1e-4)
    np.testing.assert_allclose(cache["resid_pre", 3] + cache["attn_out", 3], cache["resid_mid", 3], atol=1e-4)
    np.testing.assert_array_equal(cache["hook_full_embed"], cache["blocks.0.hook_resid_pre"])
    embedded = weights["token_embedding.weight"][output.token_ids] * np.sqrt(128)
    np.testing.assert_allclose(cache["embed"][0], embedded, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(cache["embed"] + cache["pos_embed"], cache["full_embed"], atol=1e-5)
    np.testing.assert_array_equal(cache["normalized_resid_post", 5][0], output.hidden)
    vectors = encoder.position_vectors(len(output.hidden))
    np.testing.assert_array_equal(cache["pos_embed"][0], vectors)


@pytest.mark.parametrize("names", [
    "attn.hook_pattern", "hook_pattern", "pattern", [f"blocks.{i}.attn.hook_pattern" for i in range(6)],
    lambda name: name.endswith("pattern"),
])
def test_names_pick_hooks(encoder, texts, names):
    _, cache = encoder.run_with_cache(texts[0], names)
    assert list(cache) == [f"blocks.{i}.attn.hook_pattern" for i in range(6)]


def test_a_filter_may_pick_nothing_or_one(encoder, texts):
    assert len(encoder.run_with_cache(texts[0], [])[1]) == 0
    assert list(encoder.run_with_cache(texts[0], "blocks.2.hook_mlp_out")[1]) == ["blocks.2.hook_mlp_out"]
    assert len(encoder.run_with_cache(texts[0], "all")[1]) == 93
    with pytest.raises(phasor.InvalidArgument, match="no hook 'nothing'"):
        encoder.run_with_cache(texts[0], ["embed", "nothing"])


def test_names_of_values(encoder, texts):
    _, cache = encoder.run_with_cache(texts)
    one = encoder.run_with_cache(texts[0])[1]
    full = one["blocks.2.attn.hook_q"]
    for name in (("q", 2), ("q", 2, "attn"), ("hook_q", 2)):
        np.testing.assert_array_equal(one[name], full)
        assert name in one
    for name in ("q", ("q", 6), ("nothing", 0), ("q",), (), 3, None, ("q", 2, "mlp", 4)[:0]):
        assert name not in one
        with pytest.raises(KeyError):
            one[name]
    assert one.get("nothing") is None
    np.testing.assert_array_equal(one["embed"], one["hook_embed"])
    for i in range(len(texts)):
        assert len(cache.text(i)) == len(cache)
        alone = encoder.run_with_cache(texts[i])[1]
        np.testing.assert_allclose(cache.text(i)["pattern", 5], alone["pattern", 5][0], atol=1e-4)
    np.testing.assert_array_equal(cache.text(-1)["embed"], cache.text(len(texts) - 1)["embed"])
    for i in (-1 - len(texts), len(texts)):
        with pytest.raises(IndexError):
            cache.text(i)
    with pytest.raises(phasor.InvalidArgument, match="different numbers of tokens"):
        cache["hook_embed"]


def test_texts_of_equal_length_are_stacked_and_the_batch_dimension_may_be_left_out(encoder):
    texts = ["Tom bit a dog.", "Tom saw a dog."]
    _, cache = encoder.run_with_cache(texts, "pattern")
    assert cache["pattern", 0].shape[0] == 2
    for i in range(2):
        alone = cache.text(i)["pattern", 0]
        np.testing.assert_array_equal(cache["pattern", 0][i], alone)
    _, with_it = encoder.run_with_cache(texts[0], "q")
    _, without = encoder.run_with_cache(texts[0], "q", remove_batch_dim=True)
    np.testing.assert_array_equal(with_it["q", 1][0], without["q", 1])


def test_token_ids_run_as_their_text_does(encoder, texts):
    ids = [tokens.ids for tokens in encoder.tokenize(texts)]
    expected = encoder.forward(texts)
    for given in (ids, [i.tolist() for i in ids], tuple(ids), [i.astype(np.uint16) for i in ids]):
        run = encoder.forward(given)
        np.testing.assert_array_equal(run.hidden, expected.hidden)
        np.testing.assert_array_equal(run.offsets, expected.offsets)
    for given in (ids[0], ids[0].tolist(), ids[0][None], ids[0].astype(np.int64)):
        run, cache = encoder.run_with_cache(given)
        assert len(run) == 1 and cache["embed"].shape[0] == 1
        np.testing.assert_allclose(run.hidden, expected[0], atol=1e-5)
    for wrong in ([1, 9000], [-1], [2**31], [2**40]):
        with pytest.raises(phasor.InvalidArgument):
            encoder.forward(wrong)


def test_an_encoding_is_a_sequence_of_states(encoder, texts):
    run = encoder.forward(texts)
    assert len(run) == len(texts) and len(list(run)) == len(texts)
    np.testing.assert_array_equal(run[-1], run[len(texts) - 1])
    np.testing.assert_array_equal(np.concatenate(list(run)), run.hidden)
    np.testing.assert_array_equal(run.positions[run.rows(1)], np.arange(len(run[1])))
    for i in (len(texts), -len(texts) - 1):
        with pytest.raises(IndexError):
            run[i]
    assert not run.hidden.flags.writeable
    assert str(len(texts)) in repr(run)


def test_positions_may_be_replaced(encoder, texts):
    t = len(encoder.tokenize(texts[0]).ids)
    own = encoder.forward(texts[0]).hidden
    table = encoder.position_vectors(t)

    def hidden(positions):
        return encoder.forward(texts[0], positions=positions).hidden

    for same in ("sinusoidal", "sinusoidal:paper", table, table.astype(np.float64), range(t)):
        np.testing.assert_allclose(hidden(same), own, atol=1e-4)
    np.testing.assert_allclose(hidden("none"), hidden(np.zeros((t, 128))), atol=1e-4)
    backwards = np.arange(t)[::-1]
    run = encoder.forward(texts[0], positions=backwards)
    np.testing.assert_array_equal(run.positions, backwards)
    np.testing.assert_allclose(run.hidden, hidden(table[::-1]), atol=1e-4)
    reverse = encoder.forward(texts[0], edit="reverse").hidden
    np.testing.assert_allclose(run.hidden, reverse, atol=1e-4)
    for name in ("rotary", "alibi", "sinusoidal:marian"):
        assert np.abs(hidden(name) - own).max() > 0.1


def test_without_positions_permuted_tokens_have_permuted_states(encoder, texts):
    ids = encoder.tokenize(texts[0]).ids
    order = np.random.default_rng(0).permutation(len(ids))
    states = encoder.forward(ids, positions="none").hidden
    permuted = encoder.forward(ids[order], positions="none").hidden
    np.testing.assert_allclose(permuted, states[order], atol=1e-4)


def test_edits_of_positions(encoder, texts):
    t = len(encoder.tokenize(texts[0]).ids)
    table = encoder.position_vectors(t)
    for edit, expected in (
        ("zero", table * 0),
        ("mean", np.tile(encoder.position_vectors(128).mean(0), (t, 1))),  # of the trained length
        ("scale=0.5", table * 0.5),
        ("reverse", table[::-1]),
        ("swap=2,3", table[[0, 1, 3, 2, *range(4, t)]]),
        (["reverse", "scale=2"], table[::-1] * 2),
        ("shift=3", encoder.position_vectors(t + 3)[3:]),
    ):
        np.testing.assert_allclose(encoder.position_vectors(t, edit=edit), expected, atol=1e-5)
        run, cache = encoder.run_with_cache(texts[0], "pos_embed", edit=edit)
        np.testing.assert_allclose(cache["pos_embed"][0], expected, atol=1e-5)
    for wrong in ("nothing", "scale=x", ["zero", ""]):
        with pytest.raises(phasor.InvalidArgument):
            encoder.forward(texts[0], edit=wrong)


def test_position_vectors_are_the_formula(encoder):
    vectors = encoder.position_vectors(50)
    angles = np.arange(50)[:, None] / 10000 ** (np.arange(0, 128, 2) / 128)
    np.testing.assert_allclose(vectors[:, ::2], np.sin(angles), atol=1e-5)
    np.testing.assert_allclose(vectors[:, 1::2], np.cos(angles), atol=1e-5)
    assert encoder.position_vectors(3, "none").any() == False  # noqa: E712
    np.testing.assert_array_equal(encoder.position_vectors(3, vectors)[2], vectors[2])


def test_cut_residual_connections(encoder, texts):
    def cached(cut):
        return encoder.run_with_cache(texts[0], cut_residual=cut)[1]

    for cut in ("blocks.2.attn", ["blocks.2.attn"]):
        cache = cached(cut)
        np.testing.assert_array_equal(cache["resid_mid", 2], cache["attn_out", 2])
        assert np.abs(cache["resid_post", 2] - cache["mlp_out", 2]).max() > 0.1
    for cut in (2, [2], np.int64(2), ["blocks.2.attn", "blocks.2.mlp"]):
        cache = cached(cut)
        np.testing.assert_array_equal(cache["resid_mid", 2], cache["attn_out", 2])
        np.testing.assert_array_equal(cache["resid_post", 2], cache["mlp_out", 2])


def test_texts_longer_than_the_positions():
    with phasor.Encoder("learned") as encoder:
        limit = encoder.info["position"]["usable_positions"]
        text = " ".join(str(i) for i in range(limit))
        with pytest.raises(phasor.InvalidArgument, match=str(limit)):
            encoder.forward(text)
        whole = encoder.tokenize(text).ids
        cut = encoder.forward(text, overflow="truncate")
        assert len(cut.hidden) == limit
        for overflow in ("clamp", "interpolate", "window"):
            run, cache = encoder.run_with_cache(text, "resid_pre", overflow=overflow)
            assert len(run.hidden) == len(whole)
            assert cache["resid_pre", 0].shape[0] == 1
        clamped = encoder.forward(text, overflow="clamp").positions
        np.testing.assert_array_equal(clamped, np.minimum(np.arange(len(whole)), limit - 1))
        vectors = encoder.position_vectors(limit + 5, overflow="clamp")
        np.testing.assert_array_equal(vectors[limit:], vectors[[limit - 1] * 5])
        with pytest.raises(phasor.InvalidArgument):
            encoder.position_vectors(limit + 1)


def test_hooks_of_windows_say_where_they_are():
    with phasor.Encoder("learned", threads=1) as encoder:
        limit = encoder.info["position"]["usable_positions"]
        text = " ".join(str(i) for i in range(limit))
        starts = []
        see = lambda value, hook: starts.append(hook.first_token)  # noqa: E731
        encoder.forward(text, overflow="window", fwd_hooks=[("blocks.0.hook_resid_pre", see)])
        assert starts[0] == 0 and len(starts) > 1 and starts == sorted(set(starts))


def test_hook_names_are_transformer_lens_names_and_shown(encoder, texts):
    names = encoder.hook_names
    assert len(names) == len(set(names))
    for name in ("hook_embed", "blocks.5.attn.hook_pattern", "blocks.0.mlp.hook_post"):
        assert name in names
    assert "blocks.6.hook_resid_pre" not in names
    assert "6 layers" in repr(encoder) and "sinusoidal" in repr(encoder)
    assert "1 text(s): embed" in repr(encoder.run_with_cache(texts[0], "embed")[1])


def test_negative_layers_and_near_names(encoder):
    _, cache = encoder.run_with_cache("Tom bit a dog.")
    np.testing.assert_array_equal(cache["pattern", -1], cache["pattern", 5])
    np.testing.assert_array_equal(cache["q", 2, "attn"], cache["q", 2])
    with pytest.raises(KeyError, match="pattern.*blocks 0 to 5"):
        cache["patern", 0]
    for wrong in (("pattern", 6), ("pattern", -7), ("pattern", 0, 1), ("pattern", 0, "mlp")):
        with pytest.raises(KeyError):
            cache[wrong]
    assert len(repr(cache)) < 400
