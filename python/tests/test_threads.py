"""Python threads, and what they wait for."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from conftest import CORES

import phasor


def together(*functions):
    """Runs each on a thread of its own; raises what one raised."""
    failures = []

    def run(function):
        try:
            function()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(f,), daemon=True) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


@pytest.mark.parametrize("threads", [0, 1])
def test_threads_share_an_encoder(texts, threads):
    with phasor.Encoder(threads=threads) as encoder:
        batches = [[*texts[i % 5 :], str(i)] for i in range(8)]
        expected = [encoder.encode(batch) for batch in batches]
        runs = [encoder.forward(batch).hidden for batch in batches]
        out = [np.empty((len(batch), 128), np.float32) for batch in batches]

        def work(i):
            for _ in range(10):
                np.testing.assert_array_equal(encoder.encode(batches[i]), expected[i])
                np.testing.assert_array_equal(encoder.forward(batches[i]).hidden, runs[i])
                np.testing.assert_array_equal(encoder.encode(iter(batches[i]), out=out[i]), expected[i])
                assert len(encoder.tokenize(batches[i])) == len(batches[i])

        together(*[lambda i=i: work(i) for i in range(8)])


@pytest.mark.skipif(CORES < 2, reason="needs two cores")
def test_calls_with_one_thread_run_together():
    """A hook of each of two calls waits for the other."""
    with phasor.Encoder(threads=1) as encoder:
        barrier = threading.Barrier(2)
        run = lambda: encoder.forward(  # noqa: E731
            "a", fwd_hooks=[("hook_embed", lambda v, h: (barrier.wait(600), None)[1])]
        )
        together(run, run)


def test_other_threads_run_meanwhile():
    with phasor.Encoder(threads=1) as encoder:
        encoder.encode("a")
        for call in (
            lambda: encoder.encode(["a dog bit Tom"] * 3000), lambda: encoder.forward(["a dog bit Tom"] * 3000),
            lambda: encoder.tokenize(["a dog bit Tom"] * 30000),
        ):
            # In this process's seconds: while other programs have the cores, these stand still.
            gaps, done = [], threading.Event()

            def count():
                last = time.process_time()
                while not done.is_set():
                    time.sleep(0.001)
                    now = time.process_time()
                    gaps.append(now - last)
                    last = now

            counter = threading.Thread(target=count)
            counter.start()
            start = time.process_time()
            call()
            took = time.process_time() - start
            done.set()
            counter.join()
            assert len(gaps) > 5 and max(gaps) < max(0.1, took / 2), (took, max(gaps), len(gaps))


def test_close_while_others_run():
    for _ in range(10):
        encoder = phasor.Encoder(threads=1)
        started = threading.Semaphore(0)

        def work():
            try:
                while True:
                    assert np.isfinite(encoder.encode(["a dog"] * 50)).all()
                    started.release()
                    encoder.tokenize("a dog")
                    encoder.get_sentence_embedding_dimension()
            except phasor.Error as error:
                assert "closed" in str(error)

        def close():
            started.acquire(timeout=600)
            encoder.close()

        together(work, work, work, work, close)


needs_signals = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="needs the main thread"
)


def interrupt_after(seconds, number=signal.SIGINT):
    threading.Timer(seconds, os.kill, (os.getpid(), number)).start()


@needs_signals
@pytest.mark.parametrize("name", ["encode", "encode to out", "rank"])
def test_ctrl_c_ends_a_call(encoder, name):
    texts = ["a dog bit Tom and the cat"] * 300_000
    call = {
        "encode": lambda: encoder.encode(texts),
        "encode to out": lambda: encoder.encode(iter(texts), out=np.empty((len(texts), 128), np.float32)),
        "rank": lambda: encoder.rank("a", texts),
    }[name]
    before = signal.getsignal(signal.SIGINT)
    for delay in (0.2, 0.35):
        interrupt_after(delay)
        start = time.process_time()
        with pytest.raises(KeyboardInterrupt):
            call()
        # Of the processor, for which all texts take many more, however busy the machine is.
        assert time.process_time() - start < CORES * (delay + 2)
    assert signal.getsignal(signal.SIGINT) is before
    assert encoder.encode("a").shape == (128,)


@needs_signals
def test_ctrl_c_ends_a_hook(encoder):
    interrupt_after(0.2)
    with pytest.raises(KeyboardInterrupt):
        encoder.forward("a", fwd_hooks=[("embed", lambda v, h: time.sleep(5))])
    assert encoder.encode("a").shape == (128,)


@needs_signals
def test_handlers_of_signals_are_called(encoder):
    """Those that raise end a call, others do not."""
    called = []
    before = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        signal.signal(signal.SIGINT, lambda number, frame: called.append(number))
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(3))
        texts = ["a dog bit Tom"] * 10000
        interrupt_after(0.1)
        assert encoder.encode(texts).shape == (10000, 128)
        assert called == [signal.SIGINT]
        interrupt_after(0.1, signal.SIGTERM)
        with pytest.raises(SystemExit):
            encoder.encode(texts * 30)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
