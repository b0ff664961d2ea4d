"""Direct reads that the kernel makes beside the interpreter (Linux, io_submit).

A Python thread needs the interpreter's lock to begin a read and to end it, and the thread that
computes holds that lock. A read by a thread therefore waits for the computing that it should hide
behind. A read by the kernel needs neither.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
import time
import weakref
from dataclasses import dataclass

import torch

_CALLS = {"x86_64": (206, 207, 209, 208), "aarch64": (0, 1, 2, 4)}
"""io_setup, io_destroy, io_submit, io_getevents: the C library has no names for them."""

DEPTH = 64
"""Reads that may be in flight."""


class _Command(ctypes.Structure):
    """`struct iocb` of linux/aio_abi.h."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("opcode", ctypes.c_uint16),  # 0: pread
        ("priority", ctypes.c_int16),
        ("file", ctypes.c_uint32),
        ("address", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("reserved", ctypes.c_uint64),
        ("more_flags", ctypes.c_uint32),
        ("event_file", ctypes.c_uint32),
    )


class _Event(ctypes.Structure):
    """`struct io_event`."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("command", ctypes.c_uint64),
        ("result", ctypes.c_int64),
        ("result2", ctypes.c_int64),
    )


@dataclass(eq=False)
class KernelRead:
    """One read. `result` is None while it is in flight, then its bytes or a negative errno."""

    place: torch.Tensor  # kept: the kernel writes there
    begin_ns: int
    end_ns: int = 0  # when it was seen to have ended
    result: int | None = None


class KernelReads:
    """Reads in flight of one thread. Raises OSError where the kernel offers none."""

    def __init__(self) -> None:
        calls = _CALLS.get(platform.machine()) if sys.platform == "linux" else None
        if calls is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        setup, destroy, self._submit, self._getevents = calls
        self._call = ctypes.CDLL(None, use_errno=True).syscall
        self._context = ctypes.c_uint64(0)
        self._checked(self._call(setup, DEPTH, ctypes.byref(self._context)))
        self._events = (_Event * DEPTH)()
        self._going: dict[int, KernelRead] = {}
        self._number = 0
        # Waits for what is in flight, so that nothing is written into memory given back.
        weakref.finalize(self, self._call, destroy, self._context)

    def start(self, file: int, place: torch.Tensor, offset: int) -> KernelRead:
        """`place`: contiguous bytes; address, size and offset as direct reads ask. Raises OSError
        where the kernel takes no read."""
        self._number += 1
        size = place.numel() * place.element_size()
        command = _Command(
            data=self._number, file=file, address=place.data_ptr(), size=size, offset=offset
        )
        read = KernelRead(place, time.perf_counter_ns())
        commands = (ctypes.POINTER(_Command) * 1)(ctypes.pointer(command))
        self._checked(self._call(self._submit, self._context, ctypes.c_long(1), commands))
        self._going[self._number] = read
        return read

    def wait(self, read: KernelRead) -> int:
        """Until it has ended; its bytes. Raises OSError where it failed."""
        while read.result is None:
            self._collect(1, None)
        if read.result < 0:
            raise OSError(-read.result, os.strerror(-read.result))
        return read.result

    def look(self) -> None:
        """Takes note of what has ended, without waiting."""
        if self._going:
            self._collect(0, ctypes.byref(_NO_TIME))

    def _collect(self, least: int, at_most: object) -> None:
        asked = ctypes.c_long(least), ctypes.c_long(DEPTH)
        try:
            count = self._checked(
                self._call(self._getevents, self._context, *asked, self._events, at_most)
            )
        except InterruptedError:
            return  # a signal; its handler has run
        now = time.perf_counter_ns()
        for event in self._events[:count]:
            read = self._going.pop(event.data)
            read.result, read.end_ns = event.result, now

    @staticmethod
    def _checked(result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


_NO_TIME = _Timespec(0, 0)
