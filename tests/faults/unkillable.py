"""Runs a program for which SIGKILL has no effect, as for processes that a driver holds.

    python unkillable.py PROGRAM ARGUMENTS

The kernel's filter for system calls answers every `kill` with signal 9 as done, and does nothing.
It is inherited by all that the program starts; who stands outside can still end them.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2  # linux/prctl.h
LOAD, EQUALS, RETURN = 0x20, 0x15, 0x06  # linux/bpf_common.h
ALLOW, DONE = 0x7FFF0000, 0x00050000  # linux/seccomp.h: SECCOMP_RET_ERRNO with error 0
SIGNAL_PLACE = {62: 24, 424: 24, 234: 32}
"""Of kill, pidfd_send_signal and tgkill on x86-64: where the signal stands among the arguments."""


def instruction(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("HBBI", code, yes, no, value)


def kill_filter() -> bytes:
    """Calls that are none of these, and other signals, go through."""
    parts = [instruction(LOAD, 0)]
    for call, place in SIGNAL_PLACE.items():
        parts += [
            instruction(EQUALS, call, 0, 4),
            instruction(LOAD, place),
            instruction(EQUALS, 9, 0, 1),
            instruction(RETURN, DONE),
            instruction(RETURN, ALLOW),
        ]
    return b"".join([*parts, instruction(RETURN, ALLOW)])


def install() -> bool:
    """Whether the filter holds from now on."""
    if platform.machine() != "x86_64":
        return False
    code = kill_filter()
    memory = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return False
    return not libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0)


if __name__ == "__main__":
    if not install():
        sys.exit("this machine lets nobody filter system calls")
    os.execvp(sys.argv[1], sys.argv[1:])
