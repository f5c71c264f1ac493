# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Devices of the Vulkan backend."""

import ctypes
from typing import Any, Sequence, Union

from . import _tables as tables
from ._arguments import number, text
from ._native import lib
from .device import Device, Log, device_options
from .enums import LogLevel


def open_vulkan(device: Union[int, str, None] = None, *, instance_extensions: Sequence[str] = (),
                device_extensions: Sequence[str] = (), staging_size: int = 0, log: Log = None,
                log_level: LogLevel = LogLevel.WARNING) -> Device:
    """Open a Vulkan device of quire's own: an instance, a device and one compute queue.

    `device` is its index in the driver's order, or a part of its name; None: the variable QUIRE_VULKAN_DEVICE, or
    the best. `staging_size` are the bytes that copies go through to memory that the host cannot reach; 0: 4 MiB.

    Raises UnsupportedError without a loader, driver or device, or in a library without this backend.
    """
    options = tables.quire_vulkan_options()
    options.device = text("device", str(device) if isinstance(device, int) else device)
    options.instance_extensions, options.instance_extension_count = _names(instance_extensions)
    options.device_extensions, options.device_extension_count = _names(device_extensions)
    options.settings.staging_size = number("staging_size", staging_size)
    keep = device_options(options.settings.device, log, log_level)
    return Device(lib.quire_vulkan_open, options, keep)


def _names(names: Sequence[str]) -> Any:
    return (ctypes.c_char_p * len(names))(*(text("extension", name) for name in names)), len(names)
