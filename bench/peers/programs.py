"""Programs that are measured: those that answer questions, and those that run once."""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time


class Failed(Exception):
    """A program has ended before it was asked to; it has said why on stderr."""


class Skip(Exception):
    """What cannot be measured here, and why."""


def say(text):
    print(f"peers: {text}", file=sys.stderr, flush=True)


class Program:
    """Runs until the end of the `with`; answers requests, an object a line."""

    def __init__(self, command, folder, environment):
        self.command = command
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.hello = self._answer()
        if "skipped" in self.hello:
            self.__exit__()
            raise Skip(self.hello["skipped"])

    def ask(self, **request):
        with contextlib.suppress(BrokenPipeError):  # if it has ended, _answer() says so
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        return self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"{' '.join(self.command)} ended with {self.process.wait()}")
        return json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


@contextlib.contextmanager
def busy(number):
    """So many programs that only spin, until the end of the `with` or of this program."""
    spin = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: sum(range(100000))"
    spinning = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(number)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def exec_to_exit_ms(command, runs, folder=None, line=""):
    """Milliseconds that the program takes, with `line` on its stdin: the median of `runs`."""
    times = []
    for _ in range(runs + 1):  # the first finds cold caches
        start = time.perf_counter()
        subprocess.run(
            command, cwd=folder, input=line, text=True, check=True, capture_output=True
        )
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[1:])


def _cpuinfo(key):
    """The value for the first core, or nothing."""
    with open("/proc/cpuinfo", encoding="utf-8") as source:
        values = [line.split(":", 1)[1].strip() for line in source if line.startswith(key)]
    return values[0] if values else ""


def cpu_name():
    return _cpuinfo("model name") or os.uname().machine


def cpu_flags():
    return set(_cpuinfo("flags").split())


def num_cores():
    return len(os.sched_getaffinity(0))
