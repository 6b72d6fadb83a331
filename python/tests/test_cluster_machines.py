"""phasor.cluster over machines: network namespaces with a host name, a disk and a Dask worker each.

Workers and their programs are killed at random times, one freezes, and one has a full disk. All
this happens in namespaces of processes, networks and mounts, which end with their first process.
"""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import threading
import time

import pytest

SHARDS, LINES, KILLS = 100, 700, 100
NETWORK = "10.77.0"
SWITCH = f"{NETWORK}.254"
NAMESPACES = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


def test_machines_that_die_freeze_and_fill_up(tmp_path, capsys):
    pytest.importorskip("distributed")
    if os.geteuid() != 0:
        pytest.skip("only root can make network namespaces")
    for program in ("unshare", "nsenter", "ip"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program}")
    bridge = [*NAMESPACES, "ip", "link", "add", "br0", "type", "bridge"]
    made = subprocess.run(bridge, stderr=subprocess.PIPE, text=True)
    if made.returncode != 0:
        pytest.skip(f"no network namespaces here: {made.stderr.strip()}")

    seed = random.randrange(10**6)
    command = [*NAMESPACES, sys.executable, __file__, str(tmp_path), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    with capsys.disabled():
        print(f"\n{done.stdout.strip()}")
    assert done.returncode == 0, done.stdout + done.stderr

    assert str(tmp_path) not in pathlib.Path("/proc/mounts").read_text()
    for file in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert os.fsencode(tmp_path) not in file.read_bytes()
        except OSError:
            pass  # it has just ended


def call(*command):
    subprocess.run(command, check=True)


class Machine:
    def __init__(self, number, scratch):
        self.scratch = scratch
        self.name, self.address = f"machine{number}", f"{NETWORK}.{number}"
        self.frozen = False
        self._holder = subprocess.Popen(["unshare", "--net", "--uts", "--mount", "sleep", "inf"])
        pid = str(self._holder.pid)
        while pathlib.Path(f"/proc/{pid}/comm").read_text() != "sleep\n":
            time.sleep(0.01)
        self.inside = ["nsenter", "--target", pid, "--net", "--uts", "--mount"]
        call("ip", "link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", pid)
        call("ip", "link", "set", self.name, "master", "br0", "up")
        call(*self.inside, "hostname", self.name)
        call(*self.inside, "ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            call(*self.inside, "ip", "link", "set", link, "up")
        self.start()

    def start(self):
        self.worker = subprocess.Popen(
            [
                *(*self.inside, sys.executable, "-m", "distributed.cli.dask_worker"),
                *(f"tcp://{SWITCH}:8786", "--host", self.address, "--nthreads", "1"),
                *("--no-nanny", "--no-dashboard", "--local-directory", str(self.scratch)),
            ],
            stderr=subprocess.DEVNULL,
        )

    def fill_disk(self, folder):
        """The folder is there, but no shard fits."""
        script = 'cp plan.* .. && mount -t tmpfs -o size=64k tmpfs "$PWD" && mv ../plan.* "$PWD"'
        call(*self.inside, "sh", "-c", f"cd '{folder}' && {script}")

    def programs(self):
        """What the worker has started."""
        try:
            found = pathlib.Path(f"/proc/{self.worker.pid}/task").glob("*/children")
            return [int(child) for file in found for child in file.read_text().split()]
        except OSError:
            return []  # it has just ended

    def send(self, signal, worker, programs):
        """True if anyone got it."""
        targets = [self.worker.pid] * worker + self.programs() * programs
        if self.worker.poll() is not None:
            return False
        for pid in targets:
            try:
                os.kill(pid, signal)
            except ProcessLookupError:
                pass
        return bool(targets)


class Havoc(threading.Thread):
    """Kills until it has done so often enough, and starts the dead again."""

    def __init__(self, machines, choice):
        super().__init__(daemon=True)
        self._machines, self._choice = machines, choice
        self.kills, self.over = 0, threading.Event()

    def run(self):
        while not self.over.wait(0.02):
            for machine in self._machines:
                if not machine.frozen and machine.worker.poll() is not None:
                    machine.start()
            if self.kills == KILLS:
                continue
            time.sleep(self._choice.uniform(0, 0.5))
            *victims, last = self._machines
            if self.kills == KILLS // 4 and not last.frozen:
                last.frozen = last.send(19, True, True)
            worker, programs = self._choice.choice([(1, 0), (1, 1), (0, 1), (0, 1)])
            self.kills += self._choice.choice(victims).send(9, worker, programs)


def main(base, seed):
    from phasor import _program, cluster

    import distributed

    corpus, folder = base / "corpus.txt", base / "shards"
    sentences = (f"Tom bit dog {i}, and it bit {i * i} cats." for i in range(SHARDS * LINES))
    corpus.write_text("".join(f"{sentence}\n" for sentence in sentences))
    plan = ["shard", "plan", "-q", "-i", str(corpus), "-o", str(folder)]
    _program.run_infer([*plan, "--lines", str(LINES)])

    call("ip", "link", "add", "br0", "type", "bridge")
    call("ip", "address", "add", f"{SWITCH}/24", "dev", "br0")
    for link in ("lo", "br0"):
        call("ip", "link", "set", link, "up")
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard"]
    subprocess.Popen(
        [*scheduler, "--host", SWITCH, "--port", "8786"],
        env={**os.environ, "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "10s"},
        stderr=subprocess.DEVNULL,
    )
    machines = [Machine(number, base / "dask") for number in (1, 2, 3, 4)]
    full = machines[2]
    full.fill_disk(folder)

    with distributed.Client(f"tcp://{SWITCH}:8786", timeout=600) as client:
        client.wait_for_workers(4, timeout=600)
        havoc = Havoc(machines, random.Random(seed))
        havoc.start()
        while True:
            result = cluster.run(folder, client, retries=20, progress=False)
            print(f"seed {seed}: {havoc.kills} kills; {result}", flush=True)
            assert result.shards == SHARDS
            if havoc.kills == KILLS:
                break
            for file in folder.glob("*/*.done"):
                file.unlink()  # then the shards are left again
        havoc.over.set()
        havoc.join()

    hosts = {json.loads(file.read_text())["host"] for file in folder.glob("*/*.done")}
    assert hosts <= {"machine1", "machine2", "machine4"}, hosts
    infer = [*full.inside, str(_program.PREFIX / "bin" / "infer"), "shard", "run", str(folder), "0"]
    tried = subprocess.run(infer, stderr=subprocess.PIPE, text=True)
    assert tried.returncode == 3 and "space" in tried.stderr, tried.stderr

    merged, alone = base / "merged.npy", base / "alone.npy"
    _program.run_infer(["shard", "merge", "-q", str(folder), "-o", str(merged)])
    _program.run_infer(["embed", "-q", "-i", str(corpus), "-o", str(alone)])
    assert merged.read_bytes() == alone.read_bytes()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
    # The first process of its namespace: the others end with it.
    sys.stdout.flush()
    os._exit(0)
