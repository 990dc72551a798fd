"""Signals that reach the process meant, or nobody."""

from __future__ import annotations

import os
import signal

from a40console.engines.tree import ProcessId, ProcFs


def send_signal(proc: ProcFs, process: ProcessId, number: signal.Signals) -> bool:
    """Signals exactly this process; False when we may not. One that is gone needs no signal."""
    fd = None
    try:
        fd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    except (OSError, AttributeError):
        pass  # an old kernel, a container's filter or a Python without it: signal by pid
    try:
        # Looked at while the descriptor pins the process, so no stranger can be hit.
        if not proc.is_alive(process):
            return True
        if fd is None:
            os.kill(process.pid, number)
        else:
            signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    finally:
        if fd is not None:
            os.close(fd)
    return True
