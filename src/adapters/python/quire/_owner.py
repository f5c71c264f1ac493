# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lifetime of native objects.

An :class:`Owner` holds the pointer of a device, memory, stream, compaction or trace. The public object refers to it,
and so does its finalizer, which must not refer to the public object. The owner ensures that

- a call on an object that was destroyed raises StaleHandleError instead of using its pointer;
- no object is destroyed while a thread calls it, while a view uses its bytes, or before what belongs to it,
  in whatever order the garbage collector finalizes objects;
- the child of a fork can destroy what other threads of its parent were using.

KeyboardInterrupt can come between any two steps of this code, and nothing that it skips may be missed. So nothing
counts uses. What is in use follows from objects that live:

- a running call holds the pass of a :class:`Door`, which no variable refers to;
- the library writes a pointer or handle into a structure that its owner has before the call;
- what belongs to an object is in a collection of its owner from before the call that makes it until after the call
  that ends it, with a weak reference to the public object.

Each change of a collection is one operation of the interpreter, so that threads need no lock for it.
"""

import ctypes
import os
import threading
import weakref
from typing import Any, Callable, List, NoReturn, Optional, Set

from .errors import (BusyError, QuireError, StaleHandleError, WrongStateError, check, from_result, raise_of_callbacks,
                     raised)

_owners: "weakref.WeakSet[Owner]" = weakref.WeakSet()
_roots: "Set[Owner]" = set()  # owners without a parent, until they are destroyed
_OUT = ctypes.POINTER(ctypes.c_void_p)  # of a handle
_SHUT = object()  # that ctypes refuses as an argument


class Unique:
    """The base of public objects that own something, of which there cannot be two."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Raise TypeError. copy, deepcopy and pickle all call this."""
        raise TypeError(f"a quire.{type(self).__name__} cannot be copied or pickled: it owns an object of the library, "
                        "which a copy would end twice")


class Pass(ctypes.c_void_p):
    """A pointer, as running calls hold it."""


class Door:
    """The argument of calls that stands for a pointer, and that tells whether a call runs.

    ctypes takes the pass from `_as_parameter_` and holds it until the function returns. No variable refers to the
    pass, so that neither an interrupt nor a traceback keeps it: once the door has dropped it, it lives exactly as
    long as a call runs. Those who open and shut the door hold the lock of its owner.
    """

    __slots__ = ("_as_parameter_", "_last")

    def __init__(self) -> None:
        self._as_parameter_: Any = _SHUT
        self._last: Callable[[], Any] = lambda: None  # the pass of the calls that may run though the door is shut

    def open(self, make: Callable[[Any], Any], value: Any) -> None:
        """Let calls begin: with the pass of those that run, otherwise with a new one."""
        if self._as_parameter_ is _SHUT:
            self._as_parameter_ = self._last() or make(value)

    @property
    def is_open(self) -> bool:
        """Whether calls can begin."""
        return self._as_parameter_ is not _SHUT

    def shut(self) -> bool:
        """Let no call begin any more. Return whether one runs."""
        if self._as_parameter_ is not _SHUT:
            self._last = weakref.ref(self._as_parameter_)
            self._as_parameter_ = _SHUT
        return self._last() is not None

    def hold(self) -> memoryview:
        """Return a context manager, whose block counts as a call. Raises TypeError if the door is shut.

        The manager is one of C: the interpreter holds it outside of variables, and its end is no code of Python.
        """
        return memoryview(self._as_parameter_)


class Owner:
    """The pointer of one native object, with everything that must outlive or precede its destruction.

    It is made before the native object. The call that makes that writes the pointer into `native`.
    """

    __slots__ = ("what", "native", "public", "door", "_exit", "_lock", "children", "parent", "touches", "_is_abandoned",
                 "_destroy", "_force", "keep", "__weakref__")

    def __init__(self, public: object, what: str, destroy: Callable[..., Any], parent: "Optional[Owner]" = None,
                 force: Optional[Callable[..., Any]] = None) -> None:
        self.what = what  # for messages: 'memory "a"'
        self.native = ctypes.c_void_p()
        self.public = weakref.ref(public)
        self.door = Door()  # of calls
        self._exit = Door()  # of the call that destroys the object
        # Held by the thread that opens or shuts the doors, and never waited for. An interrupt can leave it locked,
        # but only to the same thread, which can still take it.
        self._lock = threading.RLock()
        self.children: Set[Owner] = set()
        self.parent = parent
        self.touches: "weakref.WeakSet[Owner]" = weakref.WeakSet()  # that its destruction calls as well
        self._is_abandoned = False
        self._destroy, self._force = destroy, force or destroy
        self.keep: List[object] = []  # callbacks of the native object
        _owners.add(self)
        (_roots if parent is None else parent.children).add(self)
        weakref.finalize(public, self.abandon)  # also when the interpreter ends

    @property
    def pointer(self) -> Optional[int]:
        """The native pointer; None: the object does not exist yet or any more."""
        return self.native.value

    @property
    def is_abandoned(self) -> bool:
        """Whether the object is to be destroyed as soon as possible."""
        return self._is_abandoned or self.public() is None

    # ---- calls ------------------------------------------------------------------------------------------

    def call(self, function: Callable[..., int], *arguments: object) -> None:
        """Call a function of the library with the pointer and the arguments. Raise its error."""
        if self.door._as_parameter_ is _SHUT:
            self._reopen()
        try:
            result = function(self.door, *arguments)
        except ctypes.ArgumentError:  # another thread has shut the door
            self._reopen()
            result = function(self.door, *arguments)
        if raised:
            raise_of_callbacks()
        if result:
            raise from_result(result)  # in no variable: the error refers to this frame

    def held(self) -> memoryview:
        """Return a context manager; during its block the pointer stays valid."""
        if not self.door.is_open:
            self._reopen()
        try:
            return self.door.hold()
        except TypeError:  # another thread has shut it
            self._reopen()
            return self.door.hold()

    def _reopen(self) -> None:
        """Open the door for the first call, or after an interrupt of a thread that had shut it."""
        if self._lock.acquire(blocking=False):
            try:
                if self.native.value is not None and not self._exit.shut():
                    self.door.open(Pass, self.native.value)
                    return
            finally:
                self._lock.release()
        if self.native.value is None:
            raise StaleHandleError(f"the {self.what} was destroyed before") from None
        raise WrongStateError(f"another call destroys the {self.what}") from None

    # ---- the end ----------------------------------------------------------------------------------------

    def close(self, force: bool = False) -> bool:
        """Destroy the object; return False if it was destroyed before. Raise the error of the library.

        With `force`, everything in the object is destroyed too; views of bytes prevent that.
        """
        self.settle_parts()
        if not self._close_holding([owner for owner in list(self.touches) if owner.pointer is not None], force):
            return False
        self._left()
        return True

    def _close_holding(self, owners: "List[Owner]", force: bool) -> bool:
        if owners:
            with owners[-1].held():
                return self._close_holding(owners[:-1], force)
        if not self._lock.acquire(blocking=False):
            raise BusyError(f"another thread uses the {self.what}")
        try:
            return self._close(force)
        finally:
            self._lock.release()

    def _close(self, force: bool) -> bool:
        if self._exit.shut():
            raise BusyError(f"another call destroys the {self.what}")
        try:
            if self.door.shut():
                raise BusyError(f"another thread uses the {self.what}")
            if self.native.value is None:
                return False
            if force and self.view_count():
                raise BusyError(f"the {self.what} has {self.view_count()} views or arrays on its bytes")
            if force and any(child.pointer is not None for child in list(self.children)):
                raise BusyError(f"another thread uses the {self.what}")  # and has made one
            self._exit.open(_OUT, self.native)
            result = (self._force if force else self._destroy)(self._exit)
            check(result)
            return True
        finally:
            self._exit.shut()
            if self.native.value is not None:
                self.door.open(Pass, self.native.value)

    def view_count(self) -> int:
        """The number of views and arrays on the bytes of the object."""
        return 0

    def settle_parts(self) -> None:
        """End what belongs to the object and what no public object refers to any more."""
        for child in list(self.children):
            child.settle()

    def _left(self) -> None:
        """Tell the others that the object is destroyed. A second call does nothing."""
        self.keep.clear()
        for owner in list(self.touches):
            owner.settle()
        if self.parent is None:
            _roots.discard(self)
        else:
            self.parent.children.discard(self)
            self.parent.settle()

    def settle(self) -> None:
        """Destroy the object if it is abandoned and nothing uses it. Raises no error of the library."""
        if not self.is_abandoned:
            return
        if self.native.value is None:
            self._left()
            return
        if self.view_count() or any(child.pointer is not None for child in list(self.children)):
            return
        try:
            self.close(force=True)
        except QuireError:
            pass  # work of a stream is not done, or another thread was faster: the process keeps the object

    def abandon(self) -> None:
        """Destroy the object now, or when the last view or child of it ends. Raises no error of the library."""
        self._is_abandoned = True
        self.settle()


def settle_roots() -> None:
    """Destroy the devices whose finalizers were interrupted."""
    for owner in list(_roots):
        owner.settle()


def end_block(owner: Owner, destroy_all: Callable[[], None], kind: object) -> None:
    """End a ``with`` block, by an exception of this kind or by None: destroy everything in the object."""
    try:
        destroy_all()
    except BusyError:
        if kind is None:
            raise
        owner.abandon()  # a frame of the traceback may have a view


# ---- fork ---------------------------------------------------------------------------------------------------

def _forget_threads() -> None:
    """In the child: the calls of other threads do not continue. What they were destroying is lost."""
    for owner in list(_owners):
        if not owner._lock.acquire(blocking=False) and owner._exit.shut():
            owner.native.value = None
        owner.door, owner._exit, owner._lock = Door(), Door(), threading.RLock()


os.register_at_fork(after_in_child=_forget_threads)
