"""What stands between Python's threads and the library: who may run when, and how calls end."""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import ctypes
import os
import threading
import time
import weakref
from typing import Any, Callable, Iterator, Optional, Union

from ._library import Busy, Cancelled, Error, InvalidArgument, check, lib
from ._library import HookFunction, ProgressFunction, StageFunction

_pools: "weakref.WeakSet[Pool]" = weakref.WeakSet()
_here = threading.local()  # .pools: of the calls whose callbacks surround this code
_ending = False  # the interpreter is
_forked_while_running = False
#: Of Encoder.hooks(): whose they are, a list that is empty after the block, and the pair of a name
#: and a function.
hooks_around: "contextvars.ContextVar[tuple[tuple[Pool, list[bool], Any], ...]]" = contextvars.ContextVar(
    "hooks_around", default=()
)


class Pool:
    """The encoders over one model's packed weights, each for one call at a time.

    As many calls run at once as their threads fit on the cores; others wait. An encoder of the
    library is made when a call first needs it, and kept.
    """

    def __init__(self, base: ctypes.c_void_p, most: int) -> None:
        self._base = base  # never runs
        self._most = most
        self._idle: list[ctypes.c_void_p] = []
        self.closed = False
        self.running = 0
        self._renew_lock()
        _pools.add(self)

    @contextlib.contextmanager
    def base(self) -> Iterator[ctypes.c_void_p]:
        """The encoder to ask, not to run."""
        with self._lock:
            if self.closed:
                raise Error("this Encoder is closed")
            yield self._base

    def acquire(self, hooked: bool = False) -> "Turn":
        """Waits for a turn, of a call with hooks or one that they would not reach."""
        if not hooked and any(pool is self and within for pool, within, _ in hooks_around.get()):
            raise InvalidArgument(
                "hooks() reach forward(), run_with_hooks() and run_with_cache() alone; call others outside"
            )
        if self in getattr(_here, "pools", ()):
            raise Busy("an Encoder cannot be used by its own hook or progress function; use another")
        if _forked_while_running:
            raise Busy(
                "this process was forked while phasor ran on another thread; fork before, or use "
                "multiprocessing's 'spawn' or 'forkserver'"
            )
        turn = Turn(self)
        with self._lock:
            while not self.closed and not _ending and self.running >= self._most:
                self._changed.wait()
            if _ending:
                raise Cancelled("the interpreter is ending")
            if self.closed:
                raise Error("this Encoder is closed")
            turn.counts = True
            self.running += 1
            if self._idle:
                turn.encoder = self._idle.pop()
        if not turn.encoder:
            check(lib.encoder_replica(self._base, ctypes.byref(turn.encoder)))
        return turn

    def finished(self, encoder: ctypes.c_void_p) -> None:
        with self._lock:
            self.running -= 1
            if encoder:
                self._idle.append(encoder)
            self._free_if_closed()
            self._changed.notify_all()

    def close(self) -> None:
        with self._lock:
            self.closed = True
            self._free_if_closed()
            self._changed.notify_all()

    def _free_if_closed(self) -> None:
        """Called with the lock; calls that run keep all."""
        if not self.closed or self.running > 0 or not self._base:
            return
        for encoder in [*self._idle, self._base]:
            lib.encoder_free(encoder)
        self._idle.clear()
        self._base = ctypes.c_void_p()

    def wait_until_idle(self, deadline: float) -> None:
        with self._lock:
            self._changed.notify_all()
            left = max(0.0, deadline - time.monotonic())
            self._changed.wait_for(lambda: self.running == 0, timeout=left)

    def _renew_lock(self) -> None:
        # Reentrant, for a finalizer may close; entered and left without Python code, where the
        # handler of a signal could raise.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)


class Turn:
    """A call's right to run, and its encoder; given back at the latest when this is dropped."""

    __slots__ = ("_pool", "counts", "encoder")

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.counts = False
        self.encoder = ctypes.c_void_p()

    def give_back(self) -> None:
        if self.counts:
            self.counts = False
            self._pool.finished(self.encoder)

    __del__ = give_back


def _end() -> None:
    """Before the interpreter ends: its last steps stop threads wherever they are, also in C++."""
    global _ending
    _ending = True
    for call in list(Call._running.values()):
        lib.stop_request(call.stop)
    deadline = time.monotonic() + 10
    for pool in list(_pools):
        if not _forked_while_running:  # otherwise who runs is not in this process
            pool.wait_until_idle(deadline)


def _in_forked_child() -> None:
    """Another thread, which does not exist here, may have held a lock."""
    global _forked_while_running
    for pool in list(_pools):
        pool._renew_lock()
        _forked_while_running = _forked_while_running or pool.running > 0
    Call._running.clear()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)


class Call:
    """A long call of the library: its stop, its Python functions, and what one of them raised."""

    _running: dict[int, "Call"] = {}

    def __init__(
        self,
        pool: Union[Pool, list[Pool]],
        progress: Optional[Callable[..., None]] = None,
        hooks: Optional[list[Callable[[Any], None]]] = None,
    ) -> None:
        self._pools = pool if isinstance(pool, list) else [pool]
        self.progress = progress
        self.hooks = hooks or []
        self.failure: Optional[BaseException] = None
        self.keep: Any = None  # memory that the library uses, also after a second Ctrl-C
        self.stop = ctypes.c_void_p()
        check(lib.stop_create(ctypes.byref(self.stop)))

    def __del__(self, free: Any = lib.stop_free) -> None:
        free(self.stop)

    def _acquire(self) -> list[Turn]:
        """A turn of each pool; every call takes them in the same order, so that none waits for one
        that waits for it. A pool that is named twice gives one."""
        turns: dict[Pool, Turn] = {}
        try:
            for pool in sorted(set(self._pools), key=id):
                turns[pool] = pool.acquire(bool(self.hooks))
        except BaseException:
            for turn in turns.values():
                turn.give_back()
            raise
        return [turns[pool] for pool in self._pools]

    def run(self, work: Callable[..., int], long: bool = True) -> None:
        """Calls work(encoder, …), with one of each pool; it returns the library's status.

        Python handles signals on the main thread, between two steps of Python; ctypes would drop
        what a handler raises where a callback begins. So a long call from the main thread runs on
        another one, and the main thread waits for it or, after Ctrl-C, stops it.
        """
        turns = self._acquire()
        if not long or threading.current_thread() is not threading.main_thread():
            self._work(work, turns)
        else:
            thread = threading.Thread(target=self._work, args=(work, turns), daemon=True)
            thread.start()
            try:
                thread.join()
            except BaseException:  # of a signal's handler
                lib.stop_request(self.stop)
                thread.join()
                self.failure = None
                raise
        failure, self.failure = self.failure, None  # a traceback must not hold its own exception
        if failure is not None:
            try:
                raise failure
            finally:
                del failure

    def _work(self, work: Callable[..., int], turns: list[Turn]) -> None:
        self._running[id(self)] = self
        try:
            if _ending:
                lib.stop_request(self.stop)
            status = work(*[turn.encoder for turn in turns])
            if self.failure is None:  # otherwise the status follows from it
                check(status)
        except BaseException as failure:
            self.failure = failure
        finally:
            del self._running[id(self)]
            for turn in turns:
                turn.give_back()

    def call_back(self, function: Callable[..., None], *arguments: Any) -> int:
        """What the library gets for a call of a Python function: 0 to go on."""
        pools: list[Pool] = _here.__dict__.setdefault("pools", [])
        pools.extend(self._pools)
        try:
            function(*arguments)
            return 0
        except BaseException as failure:
            self.failure = failure
            return 1
        finally:
            del pools[-len(self._pools) :]


def _call_progress(user: int, *numbers: Any) -> int:
    call = Call._running[user]
    return call.call_back(call.progress, *numbers) if call.progress else 0


call_progress = ProgressFunction(_call_progress)
no_progress = ProgressFunction()  # type: ignore  # null
call_stages = StageFunction(
    lambda user, stage, *numbers: _call_progress(user, stage.decode(), *numbers)
)


class HookUser(ctypes.Structure):
    """What a hook gets as `user`: its call, and its place among the call's hooks."""

    _fields_ = [("call", ctypes.c_size_t), ("index", ctypes.c_int64)]


def _call_hook(user: int, event: Any) -> int:
    at = HookUser.from_address(user)
    call = Call._running[at.call]
    return call.call_back(call.hooks[at.index], event.contents)


call_hook = HookFunction(_call_hook)
