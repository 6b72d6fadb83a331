"""Programs that are measured: those that answer questions."""

import contextlib
import json
import os
import subprocess
import sys


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
