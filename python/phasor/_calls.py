"""What stands between Python's threads and the library: how long encoders live, and how calls end."""

from __future__ import annotations

import atexit
import contextvars
import ctypes
import os
import threading
import time
import weakref
from typing import Any, Callable, Optional, Union

from ._library import Cancelled, InvalidArgument, check, lib
from ._library import HookFunction, ProgressFunction, StageFunction

_asked: set[object] = set()  # calls that run without a Call
_ending = False  # the interpreter is
#: Of Encoder.hooks(): whose they are, a list that is empty after the block, and the pair of a name
#: and a function.
hooks_around: "contextvars.ContextVar[tuple[tuple[weakref.ref[Handle], list[bool], Any], ...]]"
hooks_around = contextvars.ContextVar("hooks_around", default=())


class Handle:
    """An encoder of the library, for any number of threads. Freed when nobody holds it: once it is
    closed, with the last call that runs."""

    def __init__(self, encoder: ctypes.c_void_p) -> None:
        self.encoder = encoder

    def __del__(self, free: Any = lib.encoder_free) -> None:
        free(self.encoder)

    def check(self, hooked: bool) -> None:
        """Before a call with hooks, or one that they would not reach."""
        if _ending:
            raise Cancelled("the interpreter is ending")
        around = () if hooked else hooks_around.get()
        if around and any(owner() is self and within for owner, within, _ in around):
            raise InvalidArgument(
                "hooks() reach forward(), run_with_hooks() and run_with_cache() alone; call others outside"
            )

    def ask(self, function: Callable[..., int], *arguments: Any, hooked: bool = False) -> None:
        """A short call."""
        call = object()
        try:
            _asked.add(call)
            self.check(hooked)
            check(function(self.encoder, *arguments))
        finally:
            _asked.discard(call)
            del self  # a traceback may hold what is here


def _end() -> None:
    """Before the interpreter ends: its last steps stop threads wherever they are, also in C++."""
    global _ending
    _ending = True
    for call in list(Call._running.values()):
        lib.stop_request(call.stop)
    deadline = time.monotonic() + 10
    while (Call._running or _asked) and time.monotonic() < deadline:
        time.sleep(0.005)


def _in_forked_child() -> None:
    """Who runs is not in this process."""
    Call._running.clear()
    _asked.clear()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)


class Call:
    """A long call of the library: its stop, its Python functions, and what one of them raised."""

    _running: dict[int, "Call"] = {}

    def __init__(
        self, handle: Union[Handle, list[Handle]], progress: Optional[Callable[..., None]] = None,
        hooks: Optional[list[Callable[[Any], None]]] = None,
    ) -> None:
        self._handles = handle if isinstance(handle, list) else [handle]
        self.progress = progress
        self.hooks = hooks or []
        self.failure: Optional[BaseException] = None
        self.keep: Any = None  # memory that the library uses, also after a second Ctrl-C
        self.stop = ctypes.c_void_p()
        check(lib.stop_create(ctypes.byref(self.stop)))

    def __del__(self, free: Any = lib.stop_free) -> None:
        free(self.stop)

    def run(self, work: Callable[..., int], long: bool = True) -> None:
        """Calls work(encoder, …), with that of each handle; it returns the library's status.

        Python handles signals on the main thread, between two steps of Python; ctypes would drop
        what a handler raises where a callback begins. So a long call from the main thread runs on
        another one, and the main thread waits for it or, after Ctrl-C, stops it.
        """
        for handle in self._handles:
            handle.check(bool(self.hooks))
        if not long or threading.current_thread() is not threading.main_thread():
            self._work(work)
        else:
            thread = threading.Thread(target=self._work, args=(work,), daemon=True)
            try:
                thread.start()
                thread.join()
            except BaseException:  # of a signal's handler
                lib.stop_request(self.stop)
                if thread.ident is not None:
                    thread.join()
                self.failure = None
                raise
        failure, self.failure = self.failure, None  # a traceback must not hold its own exception
        if failure is not None:
            try:
                raise failure
            finally:
                del failure

    def _work(self, work: Callable[..., int]) -> None:
        self._running[id(self)] = self
        try:
            if _ending:
                lib.stop_request(self.stop)
            status = work(*[handle.encoder for handle in self._handles])
            if self.failure is None:  # otherwise the status follows from it
                check(status)
        except BaseException as failure:
            self.failure = failure
        finally:
            self._running.pop(id(self), None)
            self._handles = []  # a traceback may hold this

    def call_back(self, function: Callable[..., None], *arguments: Any) -> int:
        """What the library gets for a call of a Python function: 0 to go on."""
        try:
            function(*arguments)
            return 0
        except BaseException as failure:
            self.failure = failure
            return 1


def _call_progress(user: int, *numbers: Any) -> int:
    call = Call._running[user]
    return call.call_back(call.progress, *numbers) if call.progress else 0


call_progress = ProgressFunction(_call_progress)
no_progress = ProgressFunction()  # type: ignore  # null
call_stages = StageFunction(lambda user, stage, *numbers: _call_progress(user, stage.decode(), *numbers))


class HookUser(ctypes.Structure):
    """What a hook gets as `user`: its call, and its place among the call's hooks."""

    _fields_ = [("call", ctypes.c_size_t), ("index", ctypes.c_int64)]


def _call_hook(user: int, event: Any) -> int:
    at = HookUser.from_address(user)
    call = Call._running[at.call]
    return call.call_back(call.hooks[at.index], event.contents)


call_hook = HookFunction(_call_hook)
