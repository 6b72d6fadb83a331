"""Embeds the shards of ``infer shard plan`` on the workers of a Dask cluster.

    python3 -m phasor.cluster FOLDER --scheduler tcp://HOST:8786

Only the numbers of shards go to the workers, and only errors come back: the shards' files are the
result. If a run is interrupted, the same call makes the shards that are left.
"""

from __future__ import annotations

import argparse
import atexit
import collections
import dataclasses
import hashlib
import heapq
import json
import logging
import os
import pathlib
import pkgutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple, Union

from ._library import PREFIX, BackendError, Error
from ._program import run_infer
from .vectors import _ProgressBar

try:
    import distributed
    from distributed.scheduler import KilledWorker
except ImportError:
    _NEEDED = (
        "phasor.cluster needs Dask's package distributed: "
        "apt-get install python3-distributed, or pip install distributed"
    )
    if __name__ == "__main__":
        sys.exit(_NEEDED)
    raise ImportError(_NEEDED) from None

_AGAIN = "run it again for the shards that are left"
_IN_FLIGHT = 2  # shards for each worker: one runs, one waits
_TICK = 0.1  # seconds between two looks at the cluster
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 10.0  # seconds before a failed shard is tried again; each is twice the last
_MOST_LOST = 30  # attempts at a shard that may end because Dask has lost its workers
_HOPELESS = 10  # failed shards that end a run in which none was made
_VISIBLE = 60.0  # seconds until the last files are visible; NFS shows them late


class ShardError(Error):
    """A failed attempt. ``args`` are the reason and the address of the worker."""

    def __str__(self) -> str:
        return "{} (on worker {})".format(*self.args)


class ShardsFailed(Error):
    """run() has made all other shards. ``errors`` holds the last error of each failed shard."""

    def __init__(self, message: str, errors: Optional[Dict[int, str]] = None) -> None:
        super().__init__(message)
        self.errors = errors or {}


@dataclasses.dataclass(frozen=True)
class Result:
    """The shards and lines that a run has made, and its attempts. An attempt is lost if Dask has
    lost its worker."""

    shards: int
    lines: int
    seconds: float
    attempts: int
    failed_attempts: int
    lost_attempts: int


# On the workers


class _Resident:
    """A process that keeps the model and makes one shard after another."""

    def __init__(self, folder: str, plan: str, threads: int) -> None:
        self.job = (folder, plan, threads)
        self._errors = tempfile.TemporaryFile(buffering=0)
        self._process = subprocess.Popen(
            [
                *(str(PREFIX / "bin" / "infer"), "shard", "run", folder, "-"),
                *("--json", "-q", "-t", str(threads)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C in the terminal of a worker is the worker's
        )

    def alive(self) -> bool:
        return self._process.poll() is None

    def make(self, shard: int) -> None:
        assert self._process.stdin and self._process.stdout
        self._errors.seek(0)  # for the process, too
        self._errors.truncate()
        try:
            print(shard, file=self._process.stdin, flush=True)
            answer = json.loads(self._process.stdout.readline())
            if answer["shard"] != shard:
                raise ValueError
        except (OSError, ValueError):
            raise Error(self.end()) from None
        if answer["state"] == "failed":
            raise Error(answer["error"])

    def end(self) -> str:
        """Gives the reason, if it has ended already."""
        self._process.kill()
        self._process.communicate()
        code = self._process.returncode
        self._errors.seek(0)
        said = self._errors.read().decode("utf-8", "replace").splitlines()
        how = f"infer ended by signal {-code}" if code < 0 else f"infer ended with {code}"
        return f"{how}: {said[-1]}" if said else how


_resident: Optional[_Resident] = None
_one_at_a_time = threading.Lock()


def make_shard(folder: str, plan: str, shard: int) -> None:
    """The task of a worker: makes a shard with all threads of the worker. The worker keeps one
    process for all shards of a folder."""
    global _resident
    worker = distributed.get_worker()
    job = (folder, plan, worker.state.nthreads)
    try:
        with _one_at_a_time:
            if _plan(folder) != plan:
                raise Error(
                    f"{folder} is not visible or holds another plan; "
                    "it must be on a file system that all machines share"
                )
            if _resident and (_resident.job != job or not _resident.alive()):
                _resident.end()
                _resident = None
            _resident = _resident or _Resident(*job)
            _resident.make(shard)
    except (Error, OSError) as error:
        raise ShardError(str(error), worker.address) from None


@atexit.register
def _end_resident() -> None:
    if _resident:
        _resident.end()


def _plan(folder: str) -> str:
    """Identifies the plan; empty if there is none."""
    try:
        return hashlib.sha256(pathlib.Path(folder, "plan.json").read_bytes()).hexdigest()
    except OSError:
        return ""


# At the client


class _Run:
    """Keeps a few tasks for each worker in Dask's queues. If a task fails, or Dask gives it up
    because its workers died, the shard becomes a new task under a new key."""

    def __init__(
        self, folder: str, client: distributed.Client, retries: int, left: Iterator[int]
    ) -> None:
        self.folder, self.client, self.retries = folder, client, retries
        self.plan, self.name = _plan(folder), uuid.uuid4().hex[:8]
        self.waiting = collections.deque(left)
        self.later: List[Tuple[float, int]] = []  # a heap: when a failed shard waits again, the shard
        self.running: Dict[distributed.Future, Tuple[int, Optional[Set[str]]]] = {}
        self.workers: Set[str] = set()  # that have phasor
        self.checks: Dict[str, distributed.Future] = {}  # worker → whether it has
        self.unusable: Set[str] = set()
        self.failed: Dict[int, collections.Counter[str]]  # shard → worker → attempts
        self.failed = collections.defaultdict(collections.Counter)
        self.lost: collections.Counter[int] = collections.Counter()
        self.errors: Dict[int, str] = {}
        self.made = self.attempts = 0
        self.waits = False

    def run(self, bar: Optional[_ProgressBar]) -> None:
        try:
            while self.waiting or self.running or self.later:
                while self.later and self.later[0][0] <= time.monotonic():
                    self.waiting.appendleft(heapq.heappop(self.later)[1])
                self.look_at_workers()
                room = _IN_FLIGHT * len(self.workers) - len(self.running)
                for _ in range(min(room, len(self.waiting))):
                    self.submit(self.waiting.popleft())
                time.sleep(_TICK)
                for future, (shard, workers) in list(self.running.items()):
                    gone = workers is not None and workers.isdisjoint(self.workers)
                    if future.status != "pending" or gone:
                        del self.running[future]
                        self.settle(future, shard)
                if bar:
                    bar.show(self.made)
        except OSError:
            raise BackendError(
                f"the scheduler at {self.client.scheduler.address} does not answer; "
                f"when it does, {_AGAIN}"
            ) from None
        finally:
            for future in self.running:
                future.release()
            if bar:
                bar.close()

    def look_at_workers(self) -> None:
        """Checks new workers first: some versions of Dask lose a worker that cannot load a task."""
        here = set(self.client.nthreads())
        for worker in here - self.checks.keys():
            self.checks[worker] = self.client.submit(
                pkgutil.resolve_name,
                f"{__name__}:{make_shard.__name__}",
                key=f"phasor-check-{self.name}-{uuid.uuid4().hex[:8]}",
                workers=[worker],
            )
        self.workers = {worker for worker in here if self.checks[worker].status == "finished"}
        for worker in here - self.unusable:
            if self.checks[worker].status == "error":
                self.unusable.add(worker)
                error = self.checks[worker].exception()
                _say(f"worker {worker} gets no shards: {error}; start it with a Python that has phasor")
        for worker, check in list(self.checks.items()):
            if worker not in here or check.status in ("cancelled", "lost"):
                del self.checks[worker]
        if here and here <= self.unusable and not self.made:
            raise Error(
                "no worker has phasor; start workers with a Python that has it: python3 -m dask worker"
            )
        waits = not self.checks
        if waits and not self.waits:
            address = self.client.scheduler.address
            _say(f"waiting for workers; start some with: python3 -m dask worker {address}")
        self.waits = waits

    def submit(self, shard: int) -> None:
        """To any worker, or, if the shard has failed, to one where it has failed least."""
        self.attempts += 1
        workers: Optional[Set[str]] = None
        if self.checks.keys() - self.workers or shard in self.failed:
            failures = self.failed.get(shard, collections.Counter())
            least = min(failures[worker] for worker in self.workers)
            workers = {worker for worker in self.workers if failures[worker] == least}
        future = self.client.submit(
            make_shard,
            self.folder,
            self.plan,
            shard,
            key=f"phasor-shard-{self.name}-{shard}-{self.attempts}",
            pure=False,
            workers=workers and list(workers),
        )
        self.running[future] = shard, workers

    def settle(self, future: distributed.Future, shard: int) -> None:
        if future.status == "finished":
            self.made += 1
            return
        error = future.exception() if future.status == "error" else "Dask lost its worker"
        lost = isinstance(error, (str, ImportError, KilledWorker))  # of a worker that came just now
        if lost:
            self.lost[shard] += 1
        else:
            self.failed[shard][error.args[1] if isinstance(error, ShardError) else ""] += 1
        failures = sum(self.failed[shard].values())
        if failures <= self.retries and self.lost[shard] <= _MOST_LOST:
            # A worker on a full disk fails within a tick, and may be the only one until others come back.
            pause = 0.0 if lost else min(_FIRST_PAUSE * 2 ** min(failures - 1, 10), _LONGEST_PAUSE)
            heapq.heappush(self.later, (time.monotonic() + pause, shard))
            return
        self.errors[shard] = str(error) or repr(error)
        if not self.made and len(self.errors) == _HOPELESS:
            raise Error(f"{_HOPELESS} shards failed, and none was made; the last error: {error}")


def run(
    folder: Union[str, "os.PathLike[str]"],
    client: distributed.Client,
    *,
    retries: int = 3,
    progress: bool = True,
) -> Result:
    """Makes the shards of a planned folder that are left, on the workers of the client's cluster.

    The folder must have the same name on all machines, and phasor must be installed there. A worker
    process makes one shard at a time, with as many threads as Dask gave it, and keeps the model of
    one folder: two runs at a time on the same workers load their models again and again. Workers
    may come and go; the shards of a lost worker are made by others. A shard that fails is tried
    ``retries`` times more, on other workers if there are any, after pauses of 1, 2, 4, 8 and then
    10 seconds; the others are made all the same, and ShardsFailed is raised in the end. If the first ten shards to end all fail, the run stops.
    """
    folder = os.path.abspath(folder)
    before, start = _status(folder), time.monotonic()
    job = _Run(folder, client, retries, _numbers(before["left_shards"]))
    if progress:
        _say(f"{before['left']} of {before['shards']} shards are left in {folder}")
    bar = _ProgressBar(before["left"], "shards") if progress and sys.stderr.isatty() else None
    job.run(bar)
    seconds, after = time.monotonic() - start, _status(folder)
    while after["left"] > len(job.errors) and time.monotonic() - start < seconds + _VISIBLE:
        time.sleep(5)
        after = _status(folder)
    lines = after["lines_done"] - before["lines_done"]
    failed = sum(sum(workers.values()) for workers in job.failed.values())
    result = Result(job.made, lines, seconds, job.attempts, failed, sum(job.lost.values()))
    if progress:
        _say(
            f"{job.made} shards in {seconds:.1f} s, {lines / seconds:.0f} lines/s; "
            f"{job.attempts} attempts, {failed} failed, {result.lost_attempts} lost"
        )
    if job.errors:
        raise ShardsFailed(_summary(job.errors), job.errors)
    if after["left"]:
        raise Error(
            f"the workers made all shards, but some are not visible here: is {folder} on a file "
            f"system that all machines share? infer shard status {folder} --left names them"
        )
    return result


def _say(message: str) -> None:
    before = "\r\x1b[K" if sys.stderr.isatty() else ""  # over a progress bar
    print(f"{before}phasor.cluster: {message}", file=sys.stderr, flush=True)


def _status(folder: str) -> Dict[str, Any]:
    status: Dict[str, Any] = json.loads(run_infer(["shard", "status", folder, "--json"]))
    return status


def _numbers(ranges: List[str]) -> Iterator[int]:
    for text in ranges:
        first, _, last = text.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _summary(errors: Dict[int, str]) -> str:
    first = [f"shard {shard}: {error}" for shard, error in sorted(errors.items())[:3]]
    more = [f"and {len(errors) - 3} more"] if len(errors) > 3 else []
    shards = "1 shard" if len(errors) == 1 else f"{len(errors)} shards"
    return f"{shards} failed: {'; '.join(first + more)}; {_AGAIN}"


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m phasor.cluster",
        description="Makes the shards of FOLDER, which `infer shard plan` planned, on the workers "
        "of a Dask cluster. The same command again makes those that are left.",
    )
    parser.add_argument("folder", metavar="FOLDER", help="has the same name on all machines")
    parser.add_argument("--scheduler", metavar="ADDRESS", required=True, help="tcp://HOST:8786")
    parser.add_argument("--retries", type=int, default=3, metavar="N", help="of a shard; default 3")
    parser.add_argument("--quiet", action="store_true", help="only messages of trouble")
    given = parser.parse_args(arguments)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # of Dask, at its end
    try:
        _status(given.folder)  # a wrong name, before a scheduler is waited for
        with distributed.Client(given.scheduler) as client:
            run(given.folder, client, retries=given.retries, progress=not given.quiet)
    except KeyboardInterrupt:
        _say(f"interrupted; {_AGAIN}")
        return 130
    except (Error, OSError) as error:
        _say(str(error))
        return 5 if isinstance(error, BackendError) or not isinstance(error, Error) else 3
    except ValueError as error:
        _say(f"--scheduler {given.scheduler}: {error}; write an address like tcp://HOST:8786")
        return 2
    return 0


if __name__ == "__main__":
    from phasor import cluster  # tasks are functions of this module, not of __main__

    sys.exit(cluster.main())
