"""Tokenization."""

import numpy as np
import pytest

import phasor


def test_tokens_are_those_that_are_run(encoder, texts):
    run = encoder.forward(texts)
    for i, tokens in enumerate(encoder.tokenize(texts)):
        np.testing.assert_array_equal(tokens.ids, run.token_ids[run.rows(i)])
        assert len(tokens.pieces) == len(tokens.ids)
        assert tokens.pieces[0] == "[CLS]" and tokens.pieces[-1] == "[SEP]"
        assert "".join(tokens.pieces[1:-1]).replace("▁", " ").strip() == texts[i]
        assert (tokens.token_types, tokens.dropped, tokens.invalid_bytes) == (None, 0, 0)
    one = encoder.tokenize(texts[0])
    assert one.pieces == ["[CLS]", "▁Tom", "▁bit", "▁a", "▁dog", ".", "[SEP]"]
    assert encoder.tokenize([]) == []


def test_pieces_are_those_of_the_tokens(encoder, texts):
    for tokens in encoder.tokenize(texts):
        assert encoder.pieces(tokens.ids) == tokens.pieces
    assert encoder.pieces(2) == ["[CLS]"]
    for wrong in (-1, 8192, [2**31], [1.5], [True], ["1"]):
        with pytest.raises(phasor.InvalidArgument):
            encoder.pieces(wrong)


def test_special_tokens_in_a_text_and_max_tokens(encoder):
    plain, special = (encoder.tokenize("a [MASK] b", parse_special=p) for p in (False, True))
    assert "[MASK]" in special.pieces and "[MASK]" not in plain.pieces
    whole = encoder.tokenize("one two three four")
    cut = encoder.tokenize("one two three four", max_tokens=4)
    assert len(cut.ids) == 4 and cut.dropped == len(whole.ids) - 4
    assert cut.pieces == whole.pieces[:3] + whole.pieces[-1:]


def test_pairs(golden):
    with phasor.Encoder(golden("bert-cross-encoder")) as encoder:
        pair = encoder.tokenize("a dog", "the cat")
        first, second = encoder.tokenize(["a dog", "the cat"])
        assert pair.pieces == first.pieces + second.pieces[1:]
        types = [0] * len(first.ids) + [1] * (len(second.ids) - 1)
        np.testing.assert_array_equal(pair.token_types, types)
        pairs = encoder.tokenize(["a dog", "x"], ["the cat", "y"])
        assert [p.pieces for p in pairs][0] == pair.pieces
        with pytest.raises(phasor.InvalidArgument, match="2 first and 1 second"):
            encoder.tokenize(["a", "b"], ["c"])
        with pytest.raises(TypeError, match="text_pairs"):
            encoder.tokenize(["a"], [None])


def test_a_language_marks_texts(golden):
    folder = golden("mbart")
    pieces = {}
    for language in (None, "fr_XX", "de_DE"):
        with phasor.Encoder(folder, language=language) as encoder:
            pieces[language] = encoder.tokenize("a").pieces
            ids = encoder.tokenize("a").ids.tolist()
            assert encoder.observe("a", only="norm").json[0]["ids"] == ids
    assert "fr_XX" in pieces["fr_XX"] and "de_DE" in pieces["de_DE"]
    with pytest.raises(phasor.InvalidArgument, match="nothing"):
        phasor.Encoder(folder, language="nothing")


def test_invalid_unicode_is_counted_and_a_nul_is_part_of_a_text(encoder):
    tokens = encoder.tokenize("a \ud800 dog")
    assert tokens.invalid_bytes == 1 and tokens.pieces[1] == "▁a"
    assert list(tokens.ids) == list(encoder.tokenize("a \ufffd dog").ids)
    assert encoder.tokenize("a \U0001f415").invalid_bytes == 0
    assert np.isfinite(encoder.encode(["a \udfff dog", "\ud800"])).all()
    with_nul, without = encoder.tokenize("a dog\0 bit"), encoder.tokenize("a dog")
    assert len(with_nul.ids) > len(without.ids)
    assert not np.array_equal(encoder.encode("a dog\0 bit"), encoder.encode("a dog"))
    with pytest.raises(phasor.InvalidArgument, match="prompt must not hold a NUL"):
        encoder.encode("a dog", prompt="a\0")


def test_tokens_stay_after_close():
    encoder = phasor.Encoder(threads=1)
    tokens = encoder.tokenize("a dog")
    encoder.close()
    with pytest.raises(phasor.Error, match="closed"):
        encoder.tokenize("a dog")
    assert len(tokens.ids) == 4 and tokens.ids.sum() > 0


def test_transformer_lens_names(encoder):
    tokens = encoder.tokenize("Tom bit a dog.")
    assert encoder.to_tokens("Tom bit a dog.").tolist() == [tokens.ids.tolist()]
    assert encoder.to_tokens(["Tom bit a dog.", "Tom bit a cat."]).shape == (2, len(tokens.ids))
    assert encoder.to_str_tokens("Tom bit a dog.") == tokens.pieces
    with pytest.raises(phasor.InvalidArgument, match="does not pad"):
        encoder.to_tokens(["Tom.", "Tom bit a dog."])
    cfg = encoder.cfg
    assert (cfg.n_layers, cfg.n_heads, cfg.d_model, cfg.d_mlp) == (6, 4, 128, 512)
    assert (cfg.d_head, cfg.d_vocab, cfg.n_ctx) == (32, 8192, 128)
