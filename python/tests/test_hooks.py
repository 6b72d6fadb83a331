"""Functions that see and change what passes."""

import asyncio
import threading

import numpy as np
import pytest

import phasor

TEXT, OTHER = "Tom bit a dog.", "A cat saw him."


def test_a_hook_sees_what_is_recorded(encoder):
    seen = {}

    def see(value, hook):
        assert hook.text == 0 and hook.first_token == 0
        seen[hook.name, hook.layer()] = value

    _, cache = encoder.run_with_cache(TEXT, fwd_hooks=[(None, see)])
    assert {name for name, _ in seen} == set(cache)
    for (name, layer), value in seen.items():
        np.testing.assert_array_equal(value, cache[name])
        assert layer == (int(name.split(".")[1]) if name.startswith("blocks") else -1)


def test_a_hook_is_called_for_each_text(encoder, texts):
    seen = {}
    see = lambda value, hook: seen.update({hook.text: value})  # noqa: E731
    encoder.forward(texts, fwd_hooks=[("blocks.1.attn.hook_z", see)])
    assert sorted(seen) == list(range(len(texts)))
    for i, tokens in enumerate(encoder.tokenize(texts)):
        assert seen[i].shape == (1, len(tokens.ids), 4, 32)


def test_hooks_that_change_nothing_change_nothing(encoder):
    plain = encoder.forward(TEXT).hidden
    hooked = encoder.run_with_hooks(TEXT, fwd_hooks=[(None, lambda value, hook: value)]).hidden
    np.testing.assert_allclose(hooked, plain, atol=1e-4)


@pytest.mark.parametrize("layer,head", [(0, 1), (4, 3)])
def test_zeroing_a_head_takes_its_part_out_of_attn_out(encoder, weights, layer, head):
    def zero(z, hook):
        z[:, :, head] = 0

    names = [f"blocks.{layer}.attn.hook_z", f"blocks.{layer}.hook_attn_out"]
    _, before = encoder.run_with_cache(TEXT, names)
    _, after = encoder.run_with_cache(TEXT, names, fwd_hooks=[(names[0], zero)])
    matrix = weights[f"blocks.{layer}.attn.out.weight"]  # [C, H·D]
    part = before[names[0]][0, :, head] @ matrix[:, 32 * head : 32 * (head + 1)].T
    np.testing.assert_allclose(after[names[1]][0], before[names[1]][0] - part, atol=1e-4)
    assert (after[names[0]][:, :, head] == 0).all()  # the cache holds what the hook left
    others = [h for h in range(4) if h != head]
    np.testing.assert_array_equal(after[names[0]][:, :, others], before[names[0]][:, :, others])


def test_a_new_array_counts_as_a_change_in_place(encoder):
    def in_place(value, hook):
        value *= 2

    results = [
        encoder.forward(TEXT, fwd_hooks=[("blocks.3.hook_mlp_out", f)]).hidden
        for f in (
            in_place, lambda value, hook: value * 2, lambda value, hook: (value * 2)[0],
            lambda value, hook: (value * 2).astype(np.float64), lambda value, hook: (value * 2).tolist(),
        )
    ]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    assert np.abs(results[0] - encoder.forward(TEXT).hidden).max() > 0.1


def test_mean_ablation(encoder):
    name = "blocks.2.hook_mlp_out"
    _, cache = encoder.run_with_cache(
        TEXT, fwd_hooks=[(name, lambda v, h: np.broadcast_to(v.mean(1, keepdims=True), v.shape))]
    )
    assert np.ptp(cache[name], axis=1).max() == 0
    _, before = encoder.run_with_cache(TEXT)
    difference = before[name].mean(1, keepdims=True) - before[name]
    np.testing.assert_allclose(cache["resid_post", 2] - before["resid_post", 2], difference, atol=1e-4)


def test_a_patched_stream_is_the_other_run_from_there_on(encoder):
    other_output, other = encoder.run_with_cache(OTHER)
    assert other["embed"].shape == encoder.run_with_cache(TEXT)[1]["embed"].shape
    name = "blocks.3.hook_resid_pre"
    patch = lambda value, hook: other[hook.name]  # noqa: E731
    output, cache = encoder.run_with_cache(TEXT, fwd_hooks=[(name, patch)])
    for layer in (3, 4, 5):
        for part in ("resid_pre", "pattern", "z", "mlp_out", "normalized_resid_post"):
            np.testing.assert_array_equal(cache[part, layer], other[part, layer])
    np.testing.assert_array_equal(output.hidden, other_output.hidden)
    assert np.abs(cache["resid_pre", 2] - other["resid_pre", 2]).max() > 0.1


def test_with_the_identity_as_pattern_z_is_v(encoder):
    _, cache = encoder.run_with_cache(
        TEXT, fwd_hooks=[("pattern", lambda v, hook: np.broadcast_to(np.eye(v.shape[-1]), v.shape))]
    )
    for layer in range(6):
        np.testing.assert_allclose(cache["z", layer], cache["v", layer], atol=1e-6)


def test_hooks_run_in_order(encoder):
    name, order = "blocks.0.hook_resid_pre", []

    def first(value, hook):
        order.append(1)
        return value * 0 + 1

    def second(value, hook):
        order.append(2)
        assert (value == 1).all()
        return value + 1

    _, cache = encoder.run_with_cache(TEXT, name, fwd_hooks=[(name, first), ([name], second)])
    assert order == [1, 2] and (cache[name] == 2).all()


def test_a_hook_may_keep_what_it_sees(encoder):
    kept = []
    encoder.forward(TEXT, fwd_hooks=[("resid_pre", lambda v, h: kept.append(v))])
    _, cache = encoder.run_with_cache(TEXT, "resid_pre")
    for layer, value in enumerate(kept):
        np.testing.assert_allclose(value, cache["resid_pre", layer], atol=1e-5)


@pytest.mark.parametrize("value, message", [
    *((np.zeros(shape), "hook_embed returned shape") for shape in [(), (1,), (1, 7, 127), (2, 7, 128), (128,)]),
    *((value, "hook_embed") for value in ["text", [None], [[1], [2, 3]], object(), {}]),
    (np.full((1, 7, 128), np.nan), "finite"),
])
def test_what_does_not_fit_is_refused(encoder, value, message):
    kinds = phasor.InvalidArgument if isinstance(value, np.ndarray) else (TypeError, phasor.InvalidArgument)
    with pytest.raises(kinds, match=message):
        encoder.forward(TEXT, fwd_hooks=[("hook_embed", lambda v, h: value)])


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit, StopIteration])
@pytest.mark.parametrize("name", ["hook_embed", "blocks.5.attn.hook_pattern"])
def test_an_exception_arrives_and_the_encoder_lives(encoder, kind, name):
    before = encoder.forward(TEXT).hidden
    failure = kind("of a hook")

    def fail(value, hook):
        raise failure

    with pytest.raises(kind) as raised:
        encoder.forward(TEXT, fwd_hooks=[(name, fail)])
    assert raised.value is failure
    np.testing.assert_array_equal(encoder.forward(TEXT).hidden, before)


def test_after_an_exception_no_hook_is_called(encoder):
    calls = []

    def fail(value, hook):
        calls.append(hook.name)
        raise ValueError

    with pytest.raises(ValueError):
        encoder.forward(["a", "b c", "d e f"], fwd_hooks=[(None, fail)])
    assert len(calls) == 1


@pytest.mark.parametrize("use", [
    lambda e: e.encode("a"), lambda e: e.encode(["a", "b"]), lambda e: e.forward("a"),
    lambda e: e.rank("a", ["b"]), lambda e: e.mlm_logits(np.zeros((1, 128))),
])
def test_a_hook_may_use_its_encoder_and_another(encoder, use):
    with phasor.Encoder(threads=1) as other:

        def hook(value, point):
            for used in encoder, other:
                use(used)
                assert len(used.tokenize("a dog").ids) == 4
                found.append(used.encode("a"))

        expected, found = encoder.encode("a"), []
        encoder.forward(TEXT, fwd_hooks=[("hook_embed", hook)])
    np.testing.assert_allclose(found, [expected] * 2, atol=1e-5)


def test_a_hook_may_close_the_encoder():
    encoder = phasor.Encoder(threads=1)
    run = encoder.forward(TEXT, fwd_hooks=[("hook_embed", lambda v, h: encoder.close())])
    assert np.isfinite(run.hidden).all()
    with pytest.raises(phasor.Error, match="closed"):
        encoder.forward(TEXT)


def test_an_exception_of_progress_arrives(encoder, monkeypatch):
    failure = KeyboardInterrupt()

    def fail(self, done):
        raise failure

    monkeypatch.setattr("phasor.vectors.ProgressBar.show", fail)
    for call in (
        lambda: encoder.encode(["a"] * 100, show_progress_bar=True),
        lambda: encoder.rank("a", ["b"] * 100, show_progress_bar=True),
    ):
        with pytest.raises(KeyboardInterrupt) as raised:
            call()
        assert raised.value is failure
    monkeypatch.undo()
    assert encoder.encode(["a"] * 100).shape == (100, 128)


def test_hooks_of_many_threads_do_not_mix(encoder, texts):
    def scaled(i):
        return encoder.forward(texts[i], fwd_hooks=[("embed", lambda v, h: v * i)]).hidden

    expected = [scaled(i) for i in range(len(texts))]
    found = {}

    def run(i):
        for _ in range(10):
            found[i] = scaled(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for i in range(len(texts)):
        np.testing.assert_array_equal(found[i], expected[i])


@pytest.mark.parametrize("name", ["hook_rot_q", "ln_final.hook_normalized"])
def test_a_hook_that_the_model_does_not_have(encoder, name):
    with pytest.raises(phasor.InvalidArgument, match="no such hook"):
        encoder.run_with_cache("a", [name, "z"])
    with pytest.raises(phasor.InvalidArgument, match="no such hook"):
        encoder.forward("a", fwd_hooks=[(name, lambda value, point: None)])
    with pytest.raises(phasor.InvalidArgument, match="picks no hook"):
        encoder.run_with_cache("a", lambda name: False)


def halve(value, hook):
    return value * 0.5


def test_hooks_around_several_runs(encoder):
    first, second = ("blocks.1.hook_mlp_out", halve), ("blocks.1.hook_mlp_out", lambda v, h: v[..., ::-1])
    plain = encoder.forward(TEXT).hidden
    with encoder.hooks(fwd_hooks=[first]) as hooked:
        assert hooked is encoder
        once = encoder.forward(TEXT).hidden
        _, cache = encoder.run_with_cache(TEXT, "mlp_out")
        twice = encoder.run_with_hooks(TEXT, fwd_hooks=[second]).hidden
        with encoder.hooks([second]):
            nested = encoder.forward(TEXT).hidden
        encoder.mlm_logits(once)
        assert encoder.to_str_tokens(TEXT)
    np.testing.assert_array_equal(once, encoder.forward(TEXT, fwd_hooks=[first]).hidden)
    np.testing.assert_array_equal(twice, encoder.forward(TEXT, fwd_hooks=[first, second]).hidden)
    np.testing.assert_array_equal(nested, twice)
    _, want = encoder.run_with_cache(TEXT, "mlp_out", fwd_hooks=[first])
    np.testing.assert_array_equal(cache["mlp_out", 5], want["mlp_out", 5])
    np.testing.assert_array_equal(encoder.forward(TEXT).hidden, plain)
    assert np.abs(once - plain).max() > 0.1 and np.abs(twice - once).max() > 0.1


def test_hooks_around_are_those_of_one_encoder_and_one_thread(encoder):
    plain = encoder.forward(TEXT).hidden
    found = []
    with phasor.Encoder() as other, encoder.hooks([("mlp_out", halve)]):
        np.testing.assert_array_equal(other.forward(TEXT).hidden, plain)
        other.encode(TEXT)
        thread = threading.Thread(target=lambda: found.append(encoder.forward(TEXT).hidden))
        thread.start()
        thread.join()
    np.testing.assert_array_equal(found[0], plain)


def test_hooks_around_end_with_their_block_and_are_the_same_in_every_run(encoder):
    plain = encoder.forward(TEXT).hidden
    names = (f"blocks.{layer}.hook_mlp_out" for layer in (1, 2))

    async def run():
        release = asyncio.Event()

        async def late():
            await release.wait()
            return encoder.forward(TEXT).hidden

        with encoder.hooks([(names, halve)]):
            first, second = encoder.forward(TEXT).hidden, encoder.forward(TEXT).hidden
            with pytest.raises(phasor.InvalidArgument, match="run_with_cache"):
                await encoder.aembed_query(TEXT)
            task = asyncio.create_task(late())
            await asyncio.sleep(0)
        release.set()
        return first, second, await task

    first, second, after = asyncio.run(run())
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - plain).max() > 0.1
    np.testing.assert_array_equal(after, plain)


def test_what_hooks_do_not_reach_is_an_error_between_them(encoder):
    calls = [
        lambda: encoder.encode(TEXT), lambda: encoder.encode([TEXT, OTHER]), lambda: encoder.rank(TEXT, [OTHER]),
        lambda: encoder.observe(TEXT), lambda: phasor.compare(encoder, "learned", TEXT),
    ]
    with encoder.hooks([("mlp_out", halve)]):
        for call in calls:
            with pytest.raises(phasor.InvalidArgument, match="run_with_cache"):
                call()
    for call in calls:
        call()
    with pytest.raises(TypeError):
        with encoder.hooks("mlp_out"):
            pass
    with pytest.raises(RuntimeError, match="mine"):
        with encoder.hooks([("mlp_out", halve)]):
            raise RuntimeError("mine")
    encoder.encode(TEXT)


def test_arguments_of_transformer_lens(encoder):
    hooks = [("mlp_out", halve)]
    want = encoder.forward(TEXT, fwd_hooks=hooks).hidden
    got = encoder.run_with_hooks(TEXT, hooks, reset_hooks_end=True).hidden
    np.testing.assert_array_equal(got, want)
    assert encoder.run_with_hooks(TEXT, fwd_hooks=hooks, return_type=None) is None
    output, cache = encoder.run_with_cache(TEXT, return_type=None)
    assert output is None and len(cache) == 93
    for wrong in ({"reset_hooks_end": False}, {"return_type": "logits"}, {"return_type": ""}):
        with pytest.raises(phasor.InvalidArgument):
            encoder.run_with_hooks(TEXT, **wrong)
    with pytest.raises(TypeError):
        encoder.run_with_hooks(TEXT, bwd_hooks=[])
