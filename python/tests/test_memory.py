"""Memory stays flat, and arrays stay valid."""

import gc
import os
import pathlib
import weakref

import numpy as np
import pytest

import phasor

STATM = pathlib.Path("/proc/self/statm")


def resident():
    """In MiB."""
    gc.collect()
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def fail(encoder):
    with pytest.raises(ZeroDivisionError):
        encoder.run_with_cache("Tom bit a dog. " * 5, fwd_hooks=[(None, lambda v, h: 1 / 0)])


OUT, HOOKS = np.empty((500, 128), np.float32), [("pattern", lambda value, hook: value * 1)]


@pytest.mark.skipif(not STATM.exists(), reason="needs /proc")
@pytest.mark.parametrize("call, times, most", [
    (lambda e: e.encode(iter(["a"] * 500), out=OUT), 100, 5),
    (lambda e: e.run_with_cache("Tom bit a dog. " * 5)[1]["pattern", 3], 300, 5),
    (lambda e: e.forward("Tom bit a dog.", fwd_hooks=HOOKS), 300, 5),
    (lambda e: e.tokenize(["Tom bit a dog."] * 100), 100, 5),
    (lambda e: e.position_vectors(100), 300, 5),
    (lambda e: e.rank("a", ["b", "c"] * 10), 100, 5),
    (fail, 200, 8),
    (lambda e: phasor.Encoder(threads=2, copy=True).encode("a"), 30, 20),  # not closed
])
def test_calls_leave_nothing_behind(encoder, call, times, most):
    for _ in range(max(2, times // 10)):
        call(encoder)
    before = resident()
    for _ in range(times):
        call(encoder)
    assert resident() - before < most


class Text(str):
    alive = 0

    def __init__(self, _):
        Text.alive += 1

    def __del__(self):
        Text.alive -= 1


def test_no_more_texts_are_held_than_are_handed_over_together(encoder):
    alive = []

    def texts():
        for i in range(34000):
            alive.append(Text.alive)
            yield Text(i % 10)

    encoder.encode(texts(), out=np.empty((34000, 128), np.float32))
    assert 10000 < max(alive) <= 16384 and Text.alive == 0


def test_arrays_outlive_everything():
    encoder = phasor.Encoder(threads=2)
    run, cache = encoder.run_with_cache(["Tom bit a dog.", "a"])
    tokens = encoder.tokenize("Tom bit a dog.")
    vectors, positions = encoder.encode(["a", "b"]), encoder.position_vectors(5)
    arrays = [run.hidden, run[0], run.offsets, cache.text(0)["pattern", 3], tokens.ids]
    arrays += [vectors, positions, encoder.mlm_logits(run.hidden)]
    copies = [array.copy() for array in arrays]
    gone = [weakref.ref(x) for x in (encoder, run, cache)]
    encoder.close()
    del encoder, run, cache, tokens, vectors, positions
    gc.collect()
    assert all(x() is None for x in gone)
    with phasor.Encoder("learned") as other:  # takes the memory that was freed
        kept = [other.run_with_cache(["x" * 50, "y z"]) for _ in range(20)]
        for array, copy in zip(arrays, copies):
            np.testing.assert_array_equal(array, copy)
        assert len(kept) == 20
