"""What stands between Python's threads and the library: who may run when, and how calls end."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import threading
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ._library import (
    Busy,
    Cancelled,
    Error,
    HookFunction,
    ProgressFunction,
    check,
    lib,
)

_pools: "weakref.WeakSet[Pool]" = weakref.WeakSet()
_here = threading.local()  # .pools: of the calls whose callbacks surround this code
_ending = False  # the interpreter is
_forked_while_running = False


class Pool:
    """The encoders over one model's packed weights, each for one call at a time.

    As many calls run at once as their threads fit on the cores; others wait. An encoder of the
    library is made when a call first needs it, and kept.
    """

    def __init__(self, base: ctypes.c_void_p, most: int) -> None:
        self._base = base  # never runs
        self._most = most
        self._idle: List[ctypes.c_void_p] = []
        self._stop = ctypes.c_void_p()
        check(lib.stop_create(ctypes.byref(self._stop)))
        self._closed = False
        self._running = 0
        self._changed = threading.Condition()  # reentrant: a finalizer may close
        _pools.add(self)

    @property
    def stop(self) -> ctypes.c_void_p:
        """Ends every call when the interpreter ends."""
        return self._stop

    @contextlib.contextmanager
    def base(self) -> Iterator[ctypes.c_void_p]:
        """The encoder to ask, not to run."""
        with self._changed:
            if self._closed:
                raise Error("this Encoder is closed")
            yield self._base

    def acquire(self) -> ctypes.c_void_p:
        if self in getattr(_here, "pools", ()):
            raise Busy("an Encoder cannot be used by its own hook or progress function; use another")
        if _forked_while_running:
            raise Busy(
                "this process was forked while phasor ran on another thread; fork before, or use "
                "multiprocessing's 'spawn' or 'forkserver'"
            )
        with self._changed:
            while not self._closed and not _ending and self._running >= self._most:
                self._changed.wait()
            if _ending:
                raise Cancelled("the interpreter is ending")
            if self._closed:
                raise Error("this Encoder is closed")
            self._running += 1
            if self._idle:
                return self._idle.pop()
        encoder = ctypes.c_void_p()
        try:
            check(lib.encoder_replica(self._base, ctypes.byref(encoder)))
        except BaseException:
            self._finished()
            raise
        return encoder

    def release(self, encoder: ctypes.c_void_p) -> None:
        self._finished(encoder)

    def _finished(self, encoder: Optional[ctypes.c_void_p] = None) -> None:
        with self._changed:
            self._running -= 1
            if encoder is not None:
                self._idle.append(encoder)
            self._free_if_closed()
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._free_if_closed()
            self._changed.notify_all()

    def _free_if_closed(self) -> None:
        """Called with the lock; calls that run keep all."""
        if not self._closed or self._running > 0 or not self._base:
            return
        for encoder in [*self._idle, self._base]:
            lib.encoder_free(encoder)
        lib.stop_free(self._stop)
        self._idle.clear()
        self._base = ctypes.c_void_p()

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def running(self) -> int:
        return self._running

    def _end(self) -> None:
        with self._changed:
            if self._base:
                lib.stop_request(self._stop)
            self._changed.notify_all()
            if not _forked_while_running:  # otherwise who runs is not in this process
                self._changed.wait_for(lambda: self._running == 0, timeout=10)

    def _renew_lock(self) -> None:
        self._changed = threading.Condition()


def _end() -> None:
    """Before the interpreter ends: its last steps stop threads wherever they are, also in C++."""
    global _ending
    _ending = True
    for pool in list(_pools):
        pool._end()


def _in_forked_child() -> None:
    """Another thread, which does not exist here, may have held a lock."""
    global _forked_while_running
    for pool in list(_pools):
        pool._renew_lock()
        _forked_while_running = _forked_while_running or pool.running > 0
    for call in Callbacks._calls.values():
        call._restore_handlers()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


class Callbacks:
    """The Python functions of one call, and the exception that one of them raised.

    Python calls the handlers of signals on the main thread, as soon as it runs Python: where a
    callback begins, outside of any ``try``. There ctypes would drop a KeyboardInterrupt, so that
    signals are noted during the call, and their handlers called inside a callback.
    """

    _calls: Dict[int, "Callbacks"] = {}

    def __init__(
        self,
        pool: Pool,
        progress: Optional[Callable[[int, int], None]] = None,
        hooks: Optional[List[Callable[[Any], None]]] = None,
    ) -> None:
        self._pool = pool
        self._handlers: Dict[int, Any] = {}
        self._noted: List[Tuple[int, Any]] = []
        self.progress = progress
        self.hooks = hooks or []
        self.failure: Optional[BaseException] = None

    def __enter__(self) -> "Callbacks":
        self._calls[id(self)] = self
        called = self.progress is not None or self.hooks
        if called and threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._signalled)
        return self

    def __exit__(self, *_: object) -> None:
        del self._calls[id(self)]
        self._restore_handlers()
        self._handle_signals()

    def _signalled(self, number: int, frame: Any) -> None:
        self._noted.append((number, frame))
        if self._pool in getattr(_here, "pools", ()):
            self._handle_signals()

    def _handle_signals(self) -> None:
        while self._noted:
            number, frame = self._noted.pop(0)
            self._handlers[number](number, frame)

    def _restore_handlers(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def check(self, status: int) -> None:
        """What a callback raised goes before the status that follows from it."""
        if self.failure is not None:
            raise self.failure
        check(status)

    def _call(self, function: Callable[..., None], *arguments: Any) -> int:
        pools: List[Pool] = _here.__dict__.setdefault("pools", [])
        try:
            try:
                pools.append(self._pool)
                self._handle_signals()
                function(*arguments)
            finally:
                pools.pop()
            return 0
        except BaseException as failure:  # also KeyboardInterrupt
            self.failure = failure
            return 1


def _call_progress(user: int, done: int, total: int) -> int:
    call = Callbacks._calls[user]
    return call._call(call.progress, done, total) if call.progress else 0


call_progress = ProgressFunction(_call_progress)


class HookUser(ctypes.Structure):
    """What a hook gets as `user`: its call, and its place among the call's hooks."""

    _fields_ = [("call", ctypes.c_size_t), ("index", ctypes.c_int64)]


def _call_hook(user: int, event: Any) -> int:
    at = HookUser.from_address(user)
    call = Callbacks._calls[at.call]
    return call._call(call.hooks[at.index], event.contents)


call_hook = HookFunction(_call_hook)
