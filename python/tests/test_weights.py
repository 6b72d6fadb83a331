"""The weights, compared with the file and with what a run computes from them."""

import json
import pathlib

import numpy as np
import pytest

import phasor

TEXT = "Tom bit a dog."


def write(folder, tensors, type):
    """model.safetensors with numbers of another type; BF16 is the upper half of float32."""
    types = {"F32": np.float32, "F64": np.float64, "BF16": np.float32}
    header, data = {}, b""
    for name, tensor in tensors.items():
        numbers = np.ascontiguousarray(tensor, types[type])
        if type == "BF16":
            numbers = (numbers.view(np.uint32) >> 16).astype(np.uint16)
        places = [len(data), len(data) + numbers.nbytes]
        header[name] = {"dtype": type, "shape": tensor.shape, "data_offsets": places}
        data += numbers.tobytes()
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    return folder


def test_they_are_those_of_the_file(encoder, weights):
    assert len(encoder.weights) == len(list(encoder.weights))
    for name, tensor in encoder.weights.items():
        assert tensor.dtype == np.float32 and not tensor.flags.writeable
        np.testing.assert_array_equal(tensor, weights[name])
    assert {name for name in weights if name.startswith("blocks.")} <= set(encoder.weights)
    with pytest.raises(KeyError):
        encoder.weights["blocks.6.mlp.up.weight"]


def test_a_run_computes_with_them(encoder):
    output, cache = encoder.run_with_cache(TEXT)
    embedded = encoder.W_E[output.token_ids] * np.sqrt(128)
    np.testing.assert_allclose(embedded, cache["embed"][0], rtol=1e-5)
    assert len(encoder.blocks) == encoder.cfg.n_layers
    for layer, block in enumerate(encoder.blocks):
        attn, mlp = block.attn, block.mlp
        x = cache["resid_pre", layer]
        for name, weight, bias in (("q", attn.W_Q, attn.b_Q), ("k", attn.W_K, attn.b_K), ("v", attn.W_V, attn.b_V)):
            assert weight.shape == (4, 128, 32) and bias.shape == (4, 32)
            heads = np.einsum("btc,hcd->bthd", x, weight) + bias
            np.testing.assert_allclose(heads, cache[name, layer], atol=1e-4)
        assert attn.W_O.shape == (4, 32, 128)
        out = np.einsum("bthd,hdc->btc", cache["z", layer], attn.W_O) + attn.b_O
        np.testing.assert_allclose(out, cache["attn_out", layer], atol=1e-4)
        x = cache["normalized_resid_mid", layer]
        np.testing.assert_allclose(x @ mlp.W_in + mlp.b_in, cache["pre", layer], atol=1e-4)
        out = cache["post", layer] @ mlp.W_out + mlp.b_out
        np.testing.assert_allclose(out, cache["mlp_out", layer], atol=1e-4)
        x = cache["resid_post", layer]
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        norm = x * block.ln2.w + block.ln2.b
        np.testing.assert_allclose(norm, cache["normalized_resid_post", layer], atol=1e-4)


def test_what_there_is_not_is_an_attribute_error(encoder):
    assert set(vars(encoder.blocks[-1].ln1)) == {"w", "b"} and len(encoder.blocks[1:3]) == 2
    assert not hasattr(encoder.blocks[0].mlp, "W_gate")
    with pytest.raises(AttributeError, match="W_U"):
        encoder.blocks[0].attn.W_U
    assert not hasattr(encoder, "W_pos")  # a formula
    with pytest.raises(AttributeError):
        encoder.W_E = 0
    with pytest.raises(ValueError):
        encoder.blocks[0].attn.W_Q[0] = 0
    with phasor.Encoder("learned") as learned:
        np.testing.assert_array_equal(learned.W_pos[:7], learned.position_vectors(7))


@pytest.mark.parametrize("type", ["F32", "BF16", "F64"])
def test_float32_is_not_copied(model_folder, weights, type):
    encoder = phasor.Encoder(write(model_folder(), weights, type))
    first, again = encoder.W_E, encoder.W_E
    matrix, again_matrix = encoder.blocks[2].attn.W_O, encoder.blocks[2].attn.W_O
    for a, b in ((first, again), (matrix, again_matrix)):
        assert np.shares_memory(a, b) == (type == "F32") and not a.flags.writeable
    encoder.close()
    with pytest.raises(phasor.Error, match="closed"):
        phasor.Encoder.forward(encoder, TEXT)
    del encoder, again
    want = weights["token_embedding.weight"].astype(np.float32)
    bound = 2**-7 if type == "BF16" else 0
    assert (np.abs(first - want) <= bound * np.abs(want)).all()


def test_shared_weights_of_albert(golden):
    folder = golden("albert")
    config = json.loads((pathlib.Path(folder) / "config.json").read_text())
    with phasor.Encoder(folder) as encoder:
        assert len(encoder.blocks) == config["num_hidden_layers"]
        for block in encoder.blocks:
            assert block.mlp.W_in.shape == (config["hidden_size"], config["intermediate_size"])
