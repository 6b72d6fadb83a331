"""Programs that are measured: those that answer questions, and those that run once."""

import json
import os
import statistics
import subprocess
import time


class Failed(Exception):
    """A program has ended before it was asked to; it has said why on stderr."""


class Program:
    """Runs until the end of the `with`; answers requests, an object a line."""

    def __init__(self, command, folder=None):
        self.command = command
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.hello = self._answer()

    def ask(self, **request):
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
        self.process.stdin.close()
        self.process.wait()


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


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as source:
        names = [line.split(":", 1)[1].strip() for line in source if line.startswith("model name")]
    return names[0] if names else os.uname().machine


def num_cores():
    return len(os.sched_getaffinity(0))
