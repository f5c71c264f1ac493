"""Lifetime of native objects.

An :class:`Owner` holds the pointer of a device, memory, stream or trace. The public object refers to it, and so
does its finalizer, which must not refer to the public object. The owner ensures that

- a call on an object that was destroyed raises StaleHandleError instead of using its pointer;
- no object is destroyed while a thread calls it, while a view uses its bytes, or before what belongs to it,
  in whatever order the garbage collector finalizes objects;
- the child of a fork can destroy what other threads of its parent were using.

One lock guards the fields of all owners. It is recursive, because the garbage collector can run a finalizer in
a thread that holds it, and it is held only for the change of a few fields. It is never held during a call of
the library, except by a finalizer in that situation.
"""

import ctypes
import os
import threading
import weakref
from typing import Any, Callable, List, NoReturn, Optional, Set

from .errors import BusyError, QuireError, StaleHandleError, WrongStateError, from_result

_lock = threading.RLock()
_owners: "weakref.WeakSet[Owner]" = weakref.WeakSet()


class Unique:
    """The base of public objects that own something, of which there cannot be two."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Raise TypeError. copy, deepcopy and pickle all call this."""
        raise TypeError(f"a quire.{type(self).__name__} cannot be copied or pickled: it owns an object of the library, "
                        "which a copy would end twice")


class Owner:
    """The pointer of one native object, with everything that must outlive or precede its destruction."""

    __slots__ = ("what", "pointer", "uses", "exports", "children", "parent", "touches", "is_closing", "is_abandoned",
                 "_destroy", "_force", "keep", "__weakref__")

    def __init__(self, what: str, pointer: Optional[int], destroy: Callable[..., Any], parent: "Optional[Owner]" = None,
                 force: Optional[Callable[..., Any]] = None) -> None:
        self.what = what  # for messages: 'memory "a"'
        self.pointer = pointer
        self.uses = 0  # running calls
        self.exports = 0  # views of bytes, and arrays of other libraries on them
        self.children: Set[Owner] = set()
        self.parent = parent
        self.touches: "weakref.WeakSet[Owner]" = weakref.WeakSet()  # that its destruction calls as well
        self.is_closing = False
        self.is_abandoned = False  # the public object is gone; destroy as soon as possible
        self._destroy, self._force = destroy, force or destroy
        self.keep: List[object] = []  # callbacks of the native object
        with _lock:
            _owners.add(self)
            if parent is not None:
                parent.children.add(self)

    # ---- calls ------------------------------------------------------------------------------------------

    def enter(self) -> int:
        """Begin a call. Return the pointer, which stays valid until :meth:`leave`."""
        with _lock:
            if self.pointer is None:
                raise StaleHandleError(f"the {self.what} was destroyed before")
            if self.is_closing:
                raise WrongStateError(f"another thread destroys the {self.what}")
            self.uses += 1
            return self.pointer

    def leave(self) -> None:
        """End a call."""
        with _lock:
            self.uses = max(self.uses - 1, 0)  # 0: a callback has forked, and this is the child
            is_last = self.is_abandoned and not self.uses
        if is_last:
            self.abandon()

    def call(self, function: Callable[..., int], *arguments: object) -> None:
        """Call a function of the library with the pointer and the arguments. Raise its error."""
        pointer = self.enter()
        try:
            result = function(pointer, *arguments)
            if result:  # before anything else can change the last error of the thread
                raise from_result(result)  # in no variable: the error refers to this frame
        finally:
            self.leave()

    def __enter__(self) -> int:
        return self.enter()

    def __exit__(self, *_: object) -> None:
        self.leave()

    # ---- views ------------------------------------------------------------------------------------------

    def export(self) -> None:
        """Count a view of bytes."""
        with _lock:
            self.exports += 1

    def end_export(self) -> None:
        """Count the end of a view of bytes."""
        with _lock:
            self.exports -= 1
            is_last = self.is_abandoned and not self.exports
        if is_last:
            self.abandon()

    # ---- the end ----------------------------------------------------------------------------------------

    def close(self, force: bool = False) -> bool:
        """Destroy the object; return False if it was destroyed before. Raise the error of the library.

        With `force`, everything in the object is destroyed too; views of bytes prevent that.
        """
        with _lock:
            if self.pointer is None:
                return False
            if self.is_closing or self.uses:
                raise BusyError(f"another thread uses the {self.what}")
            if force and self.exports:
                raise BusyError(f"the {self.what} has {self.exports} views or arrays on its bytes")
            self.is_closing = True
        handle, entered = ctypes.c_void_p(self.pointer), []
        try:
            for owner in list(self.touches):
                if owner.pointer is not None:
                    owner.enter()
                    entered.append(owner)
            result = (self._force if force else self._destroy)(ctypes.byref(handle))
            if result:
                raise from_result(result)
        finally:
            with _lock:
                self.is_closing = False
                self.pointer = handle.value
            for owner in entered:
                owner.leave()
        self._left()
        return True

    def _left(self) -> None:
        parent, self.parent = self.parent, None
        self.keep.clear()
        for owner in list(self.touches):
            if owner.is_abandoned:
                owner.abandon()
        if parent is not None:
            with _lock:
                parent.children.discard(self)
                is_last = parent.is_abandoned and not parent.children
            if is_last:
                parent.abandon()

    def abandon(self) -> None:
        """Destroy the object now, or when the last call, view or child of it ends. Never raises."""
        with _lock:
            self.is_abandoned = True
            if self.pointer is None or self.is_closing or self.uses or self.exports or self.children:
                return
        try:
            self.close(force=True)
        except QuireError:
            pass  # work of a stream is not done, or another thread was faster: the process keeps the object


def owned(public: object, owner: Owner) -> Any:
    """Destroy the native object when the public one is garbage, or when the interpreter ends."""
    return weakref.finalize(public, owner.abandon)


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
        owner.uses = 0
        if owner.is_closing:
            owner.is_closing, owner.pointer = False, None
    _lock.release()


os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_forget_threads)
