"""Forks, and the end of the interpreter."""

import copy
import os
import pickle
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import phasor

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

FORK = """
def fork(work):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
"""


def test_a_child_encodes_the_same_bits(run_python):
    run_python(FORK + """
import numpy as np
for threads in 1, 2:
    encoder = phasor.Encoder(threads=threads)
    texts = ["Tom bit a dog.", "a", "b c d e"]
    expected, states = encoder.encode(texts), encoder.forward(texts).hidden

    def work():
        for _ in range(3):
            assert np.array_equal(encoder.encode(texts), expected)
            assert np.array_equal(encoder.forward(texts).hidden, states)
        hooked = []
        encoder.forward(texts, fwd_hooks=[("embed", lambda v, h: hooked.append(h.text))])
        assert len(hooked) == 3
        other = phasor.Encoder("learned", threads=2)
        other.encode(texts)
        other.close()
        fork(lambda: encoder.encode(texts))
        encoder.close()

    fork(work)
    work()
""")


def test_a_child_of_a_running_process_uses_its_encoders(run_python):
    run_python(FORK + """
encoder, other = phasor.Encoder(), phasor.Encoder("none")
expected = encoder.encode(["a", "b"])
inside, leave = threading.Event(), threading.Event()

def hook(value, point):
    inside.set()
    leave.wait(600)

hooks = {"fwd_hooks": [("embed", hook)]}
thread = threading.Thread(target=encoder.forward, args=("a",), kwargs=hooks)
thread.start()
inside.wait(600)

def work():
    for used in encoder, other:
        for call, texts in (used.encode, "a"), (used.encode, ["a", "b"]), (used.forward, "a"):
            call(texts)
    assert (encoder.encode(["a", "b"]) == expected).all()
    encoder.close()

fork(work)
leave.set()
thread.join()
encoder.encode("a")
""")


def test_a_child_that_a_thread_forked_can_be_interrupted(run_python):
    """Its handlers of signals are not those of the parent's call."""
    run_python("""
import resource
import signal
encoder = phasor.Encoder()
before = signal.getsignal(signal.SIGINT)  # ignored in programs that run in the background
inside, leave = threading.Event(), threading.Event()
def hook(value, point):
    inside.set()
    leave.wait(600)
found = []
def work():
    inside.wait(600)
    child = os.fork()
    if child == 0:
        os._exit(0 if signal.getsignal(signal.SIGINT) is before else 1)
    found.append(os.waitpid(child, 0)[1])
    leave.set()
thread = threading.Thread(target=work)
thread.start()
encoder.forward("a", fwd_hooks=[("embed", hook)])
thread.join()
assert found == [0], found
""")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(run_python, method):
    run_python(f"""
import multiprocessing
import numpy as np

encoder = None

def start():
    global encoder
    encoder = encoder or phasor.Encoder(threads=1)

def work(text):
    return encoder.encode(text)

if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    start()
    texts = [str(i) for i in range(20)]
    expected = [encoder.encode(text) for text in texts]
    with context.Pool(2, start) as pool:
        found = pool.map(work, texts)
        again = pool.map(encoder.encode, texts)  # it is pickled
    assert np.array_equal(found, expected) and np.array_equal(again, expected)
""")


DAEMON = """
encoder = phasor.Encoder(threads={threads})
ready = threading.Event()

def slow(value, hook):
    ready.set()
    time.sleep(0.001)

class Texts:
    def __iter__(self):
        for i in range(10**9):
            yield str(i % 100)
            ready.set()

def work():
    texts = ["Tom bit a dog."] * 1000
    while True:
        try:
            {call}
        except phasor.Cancelled:
            return
        ready.set()

for _ in range({count}):
    threading.Thread(target=work, daemon=True).start()
ready.wait(600)
time.sleep(0.05)
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("call", [
    "encoder.encode(texts)", "encoder.encode('a')",
    "encoder.encode(Texts(), out=__import__('numpy').empty((10**6, 128), 'f4'))",
    "encoder.run_with_cache(texts[:50], fwd_hooks=[(None, slow)])", "encoder.forward(texts[:50])",
    "encoder.tokenize(texts)", "encoder.rank('a', texts)", "phasor.Encoder(threads=1).encode('a')",
])
def test_the_interpreter_ends_while_a_thread_runs(run_python, call, threads):
    run_python(DAEMON.format(threads=threads, call=call, count=3))


def test_the_interpreter_ends_without_close(run_python):
    run_python(
        "encoder = phasor.Encoder()\n"
        "run, cache = encoder.run_with_cache('a')\n"
        "cycle = [encoder]; cycle.append(cycle)\n"
        "kept = [cache['embed'], encoder.encode('a')]\n"
        "import numpy as np\n"
        "np.kept = cache['pattern', 0], encoder\n"  # by a module that ends after phasor
    )
    run_python("import atexit\nencoder = phasor.Encoder()\natexit.register(encoder.encode, 'a')")


def test_exit_in_a_hook(run_python):
    run_python("phasor.Encoder().forward('a', fwd_hooks=[('embed', lambda v, h: sys.exit(5))])", status=5)


def test_after_the_end_calls_are_cancelled(run_python):
    printed = run_python("""
import atexit

def late():
    try:
        encoder.encode("a")
    except phasor.Cancelled as error:
        print(error)

atexit._clear()
atexit.register(late)
import phasor._calls
atexit.register(phasor._calls._end)
encoder = phasor.Encoder()
""")
    assert "ending" in printed


def test_ctrl_c_ends_a_program(tmp_path):
    source = "import phasor\nencoder = phasor.Encoder()\nprint('ready', flush=True)\n"
    source += "encoder.encode(['a dog bit Tom'] * 2_000_000)"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    program = subprocess.Popen([sys.executable, "-c", source], **pipes, text=True)
    assert program.stdout.readline() == "ready\n"
    time.sleep(1)
    program.send_signal(signal.SIGINT)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    _, stderr = program.communicate(timeout=600)
    # All texts take minutes of the processor, however busy the machine is.
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 30
    assert "KeyboardInterrupt" in stderr and "ignored" not in stderr
    assert program.returncode == -signal.SIGINT


def test_a_copy_and_a_pickled_encoder_give_the_same(encoder, model_folder, tmp_path, monkeypatch):
    own = phasor.Encoder(model_folder(), threads=1, precision="int8", truncate_dim=9)
    own.max_seq_length = 7
    monkeypatch.chdir(tmp_path)
    near = phasor.Encoder("model", threads=1)
    monkeypatch.chdir(tmp_path.parent)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(near)).encode("a"), near.encode("a"))
    copy.copy(own).max_seq_length = 3
    assert own.max_seq_length == 7
    for made in (encoder, own):
        want = made.encode(["Tom bit a dog. " * 9])
        for same in (copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))):
            found = same(made)
            assert found is not made and repr(found) == repr(made)
            np.testing.assert_array_equal(found.encode(["Tom bit a dog. " * 9]), want)


def test_errors_are_pickled():
    for kind in (phasor.InvalidArgument, phasor.NotFound, phasor.BackendError):
        found = pickle.loads(pickle.dumps(kind("message")))
        assert type(found) is kind and str(found) == "message"
