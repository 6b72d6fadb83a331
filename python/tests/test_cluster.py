"""phasor.cluster with Dask's workers on this machine; test_cluster_machines.py has others."""

import json
import logging
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time

import pytest

from phasor import _library, _program

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")

from phasor import cluster  # noqa: E402

INFER = str(_library.PREFIX / "bin" / "infer")
SHARDS, LINES = 24, 100


def infer(*arguments):
    return _program.run_infer(list(arguments))


@pytest.fixture
def planned(tmp_path):
    """A folder with a plan, and the corpus."""
    corpus = tmp_path / "corpus.txt"
    sentences = (f"Tom bit dog number {i}, and dog {i * i} bit Tom." for i in range(SHARDS * LINES))
    corpus.write_text("".join(f"{sentence}\n" for sentence in sentences))
    folder = tmp_path / "job"
    infer("shard", "plan", "-i", str(corpus), "-o", str(folder), "--lines", str(LINES))
    return folder, corpus


def start_worker(address, folder, **environment):
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "distributed.cli.dask_worker", address),
            *("--no-nanny", "--no-dashboard", "--nthreads", "1", "--local-directory", str(folder)),
        ],
        env={**os.environ, **environment},
        stderr=subprocess.DEVNULL,
    )


@pytest.fixture(scope="module")
def cluster_of_two():
    """A client, and workers without a nanny: a dead one is replaced before the next test."""
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # of Dask, after the end
    running = []
    settings = {"allowed-failures": 0, "worker-ttl": "5s"}
    with dask.config.set({f"distributed.scheduler.{key}": settings[key] for key in settings}):
        local = distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50)
    try:
        with local, distributed.Client(local) as made:
            yield made, running
    finally:
        for worker in running:
            worker.kill()
            worker.wait()


@pytest.fixture
def workers(cluster_of_two, tmp_path):
    client, running = cluster_of_two
    running[:] = [worker for worker in running if worker.poll() is None]
    running += [start_worker(client.scheduler.address, tmp_path) for _ in range(2 - len(running))]
    client.wait_for_workers(2, timeout=600)
    return [worker.pid for worker in running]


@pytest.fixture
def client(cluster_of_two, workers):
    return cluster_of_two[0]


def left(folder):
    return json.loads(infer("shard", "status", str(folder), "--json"))["left"]


def check(folder, corpus):
    """The merged file has the bytes of one process."""
    merged, alone = folder.parent / "merged.npy", folder.parent / "alone.npy"
    infer("shard", "merge", str(folder), "-o", str(merged))
    infer("embed", "-q", "-i", str(corpus), "-o", str(alone))
    assert merged.read_bytes() == alone.read_bytes()


class Meanwhile(threading.Thread):
    """Does something once some shards are done."""

    def __init__(self, folder, action):
        super().__init__(daemon=True)
        self._folder, self._action = folder, action
        self.start()

    def run(self):
        while not list(self._folder.glob("*/*.done")):
            time.sleep(0.01)
        self._action()


def children(pid):
    """The infer of a worker."""
    found = pathlib.Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in found for child in file.read_text().split()]


def test_shards_are_those_of_one_process(client, planned, capfd):
    folder, corpus = planned
    result = cluster.run(folder, client)
    assert (result.shards, result.lines) == (SHARDS, SHARDS * LINES)
    assert (result.attempts, result.failed_attempts, result.lost_attempts) == (SHARDS, 0, 0)
    check(folder, corpus)
    assert cluster.run(folder, client, progress=False).attempts == 0
    said = capfd.readouterr().err
    assert f"{SHARDS} of {SHARDS} shards are left" in said and "lines/s" in said
    assert len(said.splitlines()) == 2 and "\r" not in said


def test_few_shards_are_in_flight(client, planned, monkeypatch):
    futures, most = [], 0
    submit = client.submit

    def count(function, *arguments, **options):
        nonlocal most
        future = submit(function, *arguments, **options)
        if function is cluster.make_shard:
            futures.append(future)
            most = max(most, sum(f.status == "pending" for f in futures))
        return future

    monkeypatch.setattr(client, "submit", count)
    cluster.run(planned[0], client)
    assert len(futures) == SHARDS and most <= 4


def test_a_failing_shard_does_not_stop_the_others(client, planned):
    folder, corpus = planned
    text = corpus.read_text()
    corpus.write_text(text.replace("number 305,", "number 999,"))
    with pytest.raises(cluster.ShardsFailed, match="shard 3: .*corpus.txt") as raised:
        cluster.run(folder, client, retries=2)
    assert list(raised.value.errors) == [3] and left(folder) == 1
    assert pickle.loads(pickle.dumps(raised.value)).args == raised.value.args
    corpus.write_text(text)
    assert cluster.run(folder, client).shards == 1
    check(folder, corpus)


def test_retries_outlast_a_trouble_of_two_seconds(client, planned, monkeypatch):
    folder, corpus = planned
    text = corpus.read_text()
    corpus.write_text(text.replace("number 305,", "number 999,"))
    end_of_trouble = threading.Timer(2, corpus.write_text, [text])
    settle = cluster._Run.settle

    def settle_and_see(run, future, shard):
        settle(run, future, shard)
        if run.failed and end_of_trouble.ident is None:
            end_of_trouble.start()

    monkeypatch.setattr(cluster._Run, "settle", settle_and_see)
    result = cluster.run(folder, client, retries=2)
    assert result.shards == SHARDS and result.failed_attempts > 0
    check(folder, corpus)


@pytest.mark.parametrize("whole", [True, False])
def test_a_killed_worker_or_its_program(client, workers, planned, whole):
    """allowed-failures is 0: Dask gives up every shard of a killed worker."""
    folder, corpus = planned
    killed = []

    def kill():
        killed.extend(workers[:1] if whole else children(workers[0]))
        for victim in killed:
            os.kill(victim, signal.SIGKILL)

    meanwhile = Meanwhile(folder, kill)
    result = cluster.run(folder, client)
    meanwhile.join()
    assert result.shards == SHARDS and len(killed) == 1
    assert whole or len(set(killed + children(workers[0]))) == 2
    check(folder, corpus)


def test_a_frozen_worker(client, workers, planned):
    """worker-ttl is 5 seconds."""
    folder, corpus = planned
    meanwhile = Meanwhile(folder, lambda: os.kill(workers[0], signal.SIGSTOP))
    try:
        result = cluster.run(folder, client)
    finally:
        meanwhile.join()
        os.kill(workers[0], signal.SIGKILL)
    assert result.shards == SHARDS
    check(folder, corpus)


def test_a_shard_that_kills_its_workers_ends(client, workers, planned, monkeypatch):
    monkeypatch.setattr(cluster, "_MOST_LOST", 0)
    Meanwhile(planned[0], lambda: os.kill(workers[0], signal.SIGKILL))
    with pytest.raises(cluster.ShardsFailed, match="worker"):
        cluster.run(planned[0], client)


def test_a_folder_that_no_worker_has(client, planned, monkeypatch):
    monkeypatch.setattr(cluster, "_plan", lambda _: "a plan that is only here")
    match = "10 shards failed, and none was made; .* is not visible or holds another plan"
    with pytest.raises(_library.Error, match=match):
        cluster.run(planned[0], client)
    assert left(planned[0]) == SHARDS


def test_an_answer_about_another_shard(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    infer = tmp_path / "bin" / "infer"
    infer.write_text("#!/bin/sh\necho '{\"shard\": 7}'\ncat >/dev/null\n")
    infer.chmod(0o755)
    monkeypatch.setattr(cluster, "PREFIX", tmp_path)
    resident = cluster._Resident("folder", "plan", 1)
    with pytest.raises(_library.Error, match="infer ended by signal 9"):
        resident.make(8)
    assert not resident.alive()


def program(folder, address, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "phasor.cluster", str(folder), "--scheduler", address],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        **options,
    )


@pytest.fixture
def start_without_phasor(tmp_path):
    (tmp_path / "phasor.py").write_text("raise ModuleNotFoundError(\"No module named 'phasor'\")")
    running = []

    def start(address):
        running.append(start_worker(address, tmp_path, PYTHONPATH=str(tmp_path)))

    yield start
    for worker in running:
        worker.kill()
        worker.wait()


def test_workers_without_phasor(planned, start_without_phasor):
    folder, _ = planned
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as local:
        running = program(folder, local.scheduler_address)
        assert "shards are left" in running.stderr.readline()
        assert f"dask worker {local.scheduler_address}" in running.stderr.readline()
        start_without_phasor(local.scheduler_address)
        _, said = running.communicate(timeout=600)
    assert running.returncode == 3
    assert "gets no shards: No module named 'phasor'; start it with" in said
    assert "no worker has phasor" in said


def test_a_worker_without_phasor_costs_no_retries(client, planned, start_without_phasor, capfd):
    folder, corpus = planned
    start_without_phasor(client.scheduler.address)
    client.wait_for_workers(3, timeout=600)
    result = cluster.run(folder, client, retries=0)
    assert (result.shards, result.failed_attempts) == (SHARDS, 0)
    assert capfd.readouterr().err.count("gets no shards: No module named 'phasor'; start it with") == 1
    check(folder, corpus)


def test_ctrl_c_and_again(client, planned):
    folder, corpus = planned
    address = client.scheduler.address
    running = program(folder, address)
    Meanwhile(folder, lambda: running.send_signal(signal.SIGINT)).join()
    _, said = running.communicate(timeout=600)
    assert running.returncode == 130, said
    assert "interrupted; run it again" in said and "Traceback" not in said
    again = program(folder, address)
    assert (again.communicate(timeout=600), again.returncode)[1] == 0
    check(folder, corpus)


def test_errors_of_the_program(client, planned, tmp_path):
    folder, _ = planned
    for folder, address, code in (
        (tmp_path / "nothing", client.scheduler.address, 3),
        (folder, "tcp://127.0.0.1:1", 5),
        (folder, "127.0.0.1", 2),
    ):
        connect = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}
        running = program(folder, address, env={**os.environ, **connect})
        _, said = running.communicate(timeout=600)
        assert running.returncode == code and "Traceback" not in said, said
        assert said.splitlines()[-1].startswith("phasor.cluster: ")


def test_without_distributed(tmp_path):
    (tmp_path / "distributed.py").write_text("raise ImportError")
    for arguments in (["-m", "phasor.cluster"], ["-c", "import phasor, phasor.cluster"]):
        done = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert done.returncode == 1 and "python3-distributed" in done.stderr
    code = "import phasor, sys; assert 'distributed' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
