# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Devices of the CUDA backend, and streams of other libraries.

Neither building nor using this needs the CUDA Toolkit; the driver's library is opened at run time.
"""

import ctypes
import dataclasses
from typing import Any, Iterable, List, Optional, Union

from . import _owner
from . import _tables as tables
from ._arguments import instance, must_be, number, one_of, text
from ._native import lib
from ._records import converted, read
from .device import Device, Log, device_options
from .enums import CudaPageKind, CudaWithout, LogLevel
from .errors import UnsupportedError
from .stream import Stream


@dataclasses.dataclass(frozen=True)
class CudaInfo:
    """Properties of a CUDA device; see ``quire_cuda_info`` in ``quire/cuda.h``."""

    context: int  #: CUcontext
    ordinal: int
    driver_version: int  #: 1000 * major + 10 * minor
    is_primary: bool
    has_virtual_memory: bool
    has_fd: bool
    has_dma_buf: bool
    has_rdma: bool
    has_compression: bool
    has_multicast: bool
    has_host_numa: bool
    has_host: bool
    has_pools: bool
    numa_node: int
    kept_bytes: int
    uuid: bytes = converted(bytes)


def open_cuda(device: Union[int, str, None] = None, *, kinds: Iterable[CudaPageKind] = (), peers: Iterable[int] = (),
              reachable_peers: bool = False, without: CudaWithout = CudaWithout(0), chunk_size: int = 0,
              kept_bytes: int = 0, wait_before_release: bool = False, library: Optional[str] = None, log: Log = None,
              log_level: LogLevel = LogLevel.WARNING) -> Device:
    """Open a CUDA device on its primary context, which the CUDA runtime and other libraries share.

    `device` is its ordinal, or a part of its name; None: the variable QUIRE_CUDA_DEVICE, or device 0. `kinds` are
    the page kinds that get a memory kind; none: device, pinned and combined. `peers` are ordinals of devices with
    access to all pages of virtual memory management; with `reachable_peers` every other device is one, or pages are
    plain. `library` is the driver; None: libcuda.so.1. The others are fields of ``quire_cuda_settings`` as well.

    Raises UnsupportedError without a driver or device.
    """
    options = tables.quire_cuda_options()
    options.device = text("device", str(device) if isinstance(device, int) else device)
    options.library = text("library", library)
    keep = _set(options.settings, log, log_level, kinds=kinds, peers=peers, reachable_peers=reachable_peers,
                without=without, chunk_size=chunk_size, kept_bytes=kept_bytes, wait_before_release=wait_before_release)
    return Device(lib.quire_cuda_open, options, keep)


def wrap_context(context: int, *, library: Optional[str] = None, log: Log = None,
                 log_level: LogLevel = LogLevel.WARNING, **settings: Any) -> Device:
    """Open a device on a CUcontext of the caller, which must outlive it. `settings` are those of open_cuda, from
    `kinds` to `wait_before_release`."""
    options = tables.quire_cuda_wrap_options(number("context", context))
    options.library = text("library", library)
    keep = _set(options.settings, log, log_level, **settings)
    return Device(lib.quire_cuda_wrap, options, keep)


def _set(settings: Any, log: Log, log_level: LogLevel, *, kinds: Iterable[CudaPageKind] = (), peers: Iterable[int] = (),
         reachable_peers: bool = False, without: CudaWithout = CudaWithout(0), chunk_size: int = 0,
         kept_bytes: int = 0, wait_before_release: bool = False) -> List[object]:
    """Fill in quire_cuda_settings. Return what must live as long as the device."""
    for kind in kinds:
        settings.kinds |= 1 << one_of("kind", kind, CudaPageKind)
    ordinals = [number("peer", peer, 31) for peer in peers]
    settings.peers = (ctypes.c_int32 * len(ordinals))(*ordinals) if ordinals else None
    settings.peer_count = len(ordinals)
    settings.reachable_peers = reachable_peers
    settings.without = number("without", without, 32)
    settings.chunk_size = number("chunk_size", chunk_size)
    settings.kept_bytes = number("kept_bytes", kept_bytes)
    settings.wait_before_release = wait_before_release
    return device_options(settings.device, log, log_level)


def cuda_info(device: Device) -> CudaInfo:
    """Return the properties of a CUDA device. Raises InvalidArgumentError for a device of another backend."""
    instance("device", device, Device)
    info = tables.quire_cuda_info()
    device._owner.call(lib.quire_cuda_get_info, ctypes.byref(info))
    return read(CudaInfo, info)


def find_kind(device: Device, page_kind: CudaPageKind, node: int = -1) -> int:
    """Return the memory kind of a page kind, for ``kind_mask=1 << kind``. Raises UnsupportedError without one."""
    instance("device", device, Device)
    page_kind = one_of("page_kind", page_kind, CudaPageKind)
    kind = ctypes.c_uint32()
    device._owner.call(lib.quire_cuda_find_kind, page_kind, node, ctypes.byref(kind))
    return kind.value


def stream_handle(stream: Any) -> int:
    """Return the CUstream of a stream of another library, as a number.

    Takes a number, an object with the CUDA stream protocol (``__cuda_stream__``), and streams of CuPy (``ptr``),
    PyTorch (``cuda_stream``) and Numba (``handle``). 0 and 1 are the legacy default stream, 2 is that of the thread.
    """
    if isinstance(stream, _owner.Unique):  # an allocation has a handle too
        raise must_be("stream", "a CUDA stream of another library or its number", stream)
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version, handle = protocol() if callable(protocol) else protocol
        if version != 0:
            raise UnsupportedError(f"version {version} of the CUDA stream protocol is unknown")
        return number("stream", int(handle))
    for name in ("cuda_stream", "ptr", "handle"):
        value = getattr(stream, name, None)
        if value is not None:
            return number("stream", int(getattr(value, "value", value) or 0))
    if isinstance(stream, int):
        return number("stream", stream)
    raise must_be("stream", "a CUDA stream of another library or its number", stream)


def wrap_stream(device: Device, stream: Any, name: Optional[str] = None) -> Stream:
    """Return a stream of quire for a CUDA stream of another library, which must outlive it.

    `stream` is anything that :func:`stream_handle` takes.
    """
    instance("device", device, Device)
    return Stream(device, lib.quire_cuda_stream_wrap, stream_handle(stream), text("name", name), wrapped=stream)


def native_stream(stream: Stream) -> int:
    """Return the CUstream of a stream, as a number; 0 is the legacy default stream."""
    instance("stream", stream, Stream)
    native = ctypes.c_void_p()
    stream._owner.call(lib.quire_cuda_stream_get, ctypes.byref(native))
    return native.value or 0
