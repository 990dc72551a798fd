"""Keeps one engine: starts it, reaps everything below it, and records how it ended.

Run by path, `python -I -S keeper.py RUN_DIR`, with the launch as JSON on stdin: `argv`, `env`
(all of the engine's environment), `cwd`, `output_limit_bytes`. Secrets in the environment thus
reach neither a command line nor a disk. Standard library only, and imported by nobody, so that it
outlives the service that started it and any upgrade of the package.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

POLL_S = 1.0
LAST_LINES = 40
LAST_LINE_CHARS = 2000
TAIL_BYTES = 256 * 1024
COPY_BYTES = 1024 * 1024

OUTPUT = "output.log"
OUTPUT_BEFORE = "output.log.1"
ENGINE = "engine.json"
EXIT = "exit.json"
OWN_LOG = "keeper.log"

PROC = Path("/proc")
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def iso_time(unix_s: float) -> str:
    """UTC with milliseconds, as in every record of the console."""
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(unix_s))
    return f"{whole}.{int(unix_s % 1 * 1000):03d}Z"


def write_json(path: Path, document: dict[str, object]) -> None:
    """Replaces a file in one step, on the disk before the name changes; raises OSError."""
    partial = path.with_name(path.name + ".tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with os.fdopen(os.open(partial, flags, 0o600), "w", encoding="utf-8") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def read_stat(pid: int) -> list[str] | None:
    """Name, then the fields of `/proc/PID/stat` from the state on (proc(5)); None when gone."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name is in brackets and may hold brackets and blanks itself.
    name, _, rest = text.partition("(")[2].rpartition(")")
    return [name, *rest.split()]


def start_ticks(pid: int) -> int:
    """When the process began, in clock ticks since boot: with the pid, its identity."""
    stat = read_stat(pid)
    return int(stat[20]) if stat else 0


def boot_id() -> str:
    """The kernel's name for this boot: after another one every recorded pid is a stranger's."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def living_below(ancestor: int) -> list[dict[str, object]]:
    """Every living process below one; a zombie whose threads are all gone does not live."""
    pids = [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]
    stats = {pid: read_stat(pid) for pid in pids}
    children: dict[int, list[int]] = {}
    for pid, stat in stats.items():
        if stat:
            children.setdefault(int(stat[2]), []).append(pid)
    found: list[dict[str, object]] = []
    queue = list(children.get(ancestor, ()))
    while queue:
        pid = queue.pop()
        queue += children.get(pid, ())
        stat = stats[pid]
        if stat and not (stat[1] in "ZX" and int(stat[18]) <= 1):
            found.append(
                {
                    "pid": pid,
                    "start_ticks": int(stat[20]),
                    "name": stat[0],
                    "rss_bytes": int(stat[22]) * os.sysconf("SC_PAGE_SIZE"),
                }
            )
    return found


def cgroup_paths(proc: Path) -> dict[str, str]:
    """Our cgroup by v1 controller, and under the empty name that of v2."""
    paths = {}
    for line in (proc / "self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    return paths


def find_oom_counter(proc: Path = PROC) -> Path | None:
    """The file that counts the out-of-memory kills of our cgroup, v2 or v1; None if unreadable.

    A container may show the host's path, which its mount lacks: then the mount's root serves.
    """
    try:
        paths = cgroup_paths(proc)
        mounts = (proc / "self/mountinfo").read_text().splitlines()
    except (OSError, ValueError):
        return None
    for line in mounts:
        left, _, right = line.partition(" - ")
        fields, (kind, *rest) = left.split(), right.split()
        if kind == "cgroup2":
            path, name = paths.get("", "/"), "memory.events"
        elif kind == "cgroup" and "memory" in rest[-1].split(","):
            path, name = paths.get("memory", "/"), "memory.oom_control"
        else:
            continue
        root, mount = fields[3], Path(fields[4])
        for below in (path.removeprefix(root.rstrip("/")), path, ""):
            counter = mount / below.lstrip("/") / name
            if oom_kills(counter) is not None:
                return counter
    return None


def oom_kills(counter: Path | None) -> int | None:
    """The kernel's count of processes killed for want of memory; None where it has none."""
    if counter is None:
        return None
    with suppress(OSError, ValueError):
        for line in counter.read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return None


def last_lines(run_dir: Path) -> list[str]:
    """The end of the output, also when it was cut a moment ago; carriage returns end a line."""
    tail = b""
    for name in (OUTPUT, OUTPUT_BEFORE):
        with suppress(OSError), (run_dir / name).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            tail = file.read(TAIL_BYTES) + tail
        if tail.count(b"\n") > LAST_LINES:
            break
    lines = tail.decode("utf-8", errors="replace").splitlines()
    return [line[:LAST_LINE_CHARS] for line in lines[-LAST_LINES:]]


def cap_output(run_dir: Path, limit_bytes: int) -> None:
    """Above the limit, moves the last half into `output.log.1` and empties the file in place.

    The engine appends to the same open file and goes on at its new end. On a full disk the old
    half is given up for the sake of the engine's next lines.
    """
    output, before = run_dir / OUTPUT, run_dir / OUTPUT_BEFORE
    with suppress(OSError), output.open("r+b", buffering=0) as source:
        size = os.fstat(source.fileno()).st_size
        if size <= limit_bytes:
            return
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            with os.fdopen(os.open(before, flags, 0o600), "wb", buffering=0) as copy:
                source.seek(size - limit_bytes // 2)
                first = source.read(COPY_BYTES)
                chunk = first.partition(b"\n")[2] or first
                while chunk:
                    write_all(copy.fileno(), chunk)
                    chunk = source.read(COPY_BYTES)
        except OSError:
            with suppress(OSError):
                before.unlink()
        source.truncate(0)


def write_all(fd: int, data: bytes) -> None:
    """Writes all of it; raises OSError when the disk is full."""
    while data:
        data = data[os.write(fd, data) :]


class Keeper:
    """One engine, from its start to the end of the last process below it."""

    def __init__(self, run_dir: Path, launch: dict[str, object]) -> None:
        self.run_dir = run_dir
        self.launch = launch
        self.limit_bytes = int(str(launch["output_limit_bytes"]))
        self.unwritten: dict[str, dict[str, object]] = {}
        self.leader = 0
        self.exit: dict[str, object] = {}
        self.oom_counter = find_oom_counter()
        self.oom_at_start = self.oom_last = oom_kills(self.oom_counter)
        self.oom_kill_at: str | None = None

    def run(self) -> None:
        """Starts the engine and stays until nothing below us lives and all is written."""
        try:
            self.start()
        except Exception as error:  # noqa: BLE001  whatever forbids the start has to be told
            self.conclude(None, None, error)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        next_tick_s = time.monotonic()
        while True:
            alone = self.reap()
            if alone or time.monotonic() >= next_tick_s:
                next_tick_s = time.monotonic() + POLL_S
                self.tick()
            if alone and not self.unwritten:
                return
            # Blocked, the signal waits for us: none is lost between the reaping and here.
            signal.sigtimedwait({signal.SIGCHLD}, max(0.0, next_tick_s - time.monotonic()))

    def start(self) -> None:
        """Starts the engine as leader of its own session, its output straight into the file."""
        argv, env, cwd = self.launch["argv"], self.launch["env"], self.launch["cwd"]
        if not isinstance(argv, list) or not isinstance(env, dict) or not argv:
            raise ValueError("the launch names no program")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        output = os.open(self.run_dir / OUTPUT, flags, 0o600)
        try:
            engine = subprocess.Popen(
                argv,
                env=env,
                cwd=str(cwd),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        finally:
            os.close(output)
        self.launch = {}
        self.leader = engine.pid
        engine.returncode = 0  # reaped here, by waitpid
        self.write(
            ENGINE,
            {
                "keeper_pid": os.getpid(),
                "keeper_start_ticks": start_ticks(os.getpid()),
                "pid": engine.pid,
                "session_id": engine.pid,
                "start_ticks": start_ticks(engine.pid),
                "boot_id": boot_id(),
                "started_at": iso_time(time.time()),
                "started_monotonic_s": time.monotonic(),
            },
        )

    def reap(self) -> bool:
        """Takes in what ended below us; True when no child is left, hence no descendant."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if not pid:
                return False
            if pid == self.leader:
                code = os.waitstatus_to_exitcode(status)
                self.conclude(*((code, None) if code >= 0 else (None, signal_name(-code))))

    def conclude(
        self, code: int | None, by_signal: str | None, error: Exception | None = None
    ) -> None:
        """Notes the end of the leader, or why it never began."""
        self.watch_memory()
        self.exit = {
            "code": code,
            "signal": by_signal,
            "error": None if error is None else describe(error),
            "errno": getattr(error, "errno", None),
            "ended_at": iso_time(time.time()),
            "last_lines": last_lines(self.run_dir),
        }
        self.tick()

    def tick(self) -> None:
        """What is done once a second: the output's cap, the kernel's count, the record."""
        cap_output(self.run_dir, self.limit_bytes)
        self.watch_memory()
        if self.exit:
            survivors = living_below(os.getpid())
            if identities(survivors) != identities(self.exit.get("survivors")):
                counted = self.oom_last is not None and self.oom_at_start is not None
                self.exit["survivors"] = survivors
                self.exit["oom_kill"] = self.oom_last != self.oom_at_start if counted else None
                self.exit["oom_kill_at"] = self.oom_kill_at
                self.unwritten[EXIT] = self.exit
        for name in tuple(self.unwritten):
            self.write(name, self.unwritten[name])

    def watch_memory(self) -> None:
        """Notes when the kernel's count of kills for want of memory last went up."""
        kills = oom_kills(self.oom_counter)
        if kills is not None and self.oom_last is not None and kills > self.oom_last:
            self.oom_kill_at = iso_time(time.time())
        self.oom_last = kills

    def write(self, name: str, document: dict[str, object]) -> None:
        """Writes a record; a full disk keeps it for the next tick, a removed folder drops it."""
        self.unwritten[name] = document
        try:
            write_json(self.run_dir / name, document)
        except FileNotFoundError:
            del self.unwritten[name]
        except OSError:
            return
        else:
            del self.unwritten[name]


def identities(processes: object) -> set[tuple[object, object]] | None:
    """Who a list of survivors names; None when there is no list yet."""
    if not isinstance(processes, list):
        return None
    return {(process["pid"], process["start_ticks"]) for process in processes}


def signal_name(number: int) -> str:
    """`SIGKILL` for 9; real-time signals have a number only."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def describe(error: Exception) -> str:
    """The system's words for what went wrong, with the file it is about."""
    if isinstance(error, OSError) and error.strerror:
        about = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{about} ({errno.errorcode.get(error.errno or 0, error.errno)})"
    return str(error) or type(error).__name__


def detach(run_dir: Path) -> None:
    """Leaves the starter's session and streams; signals meant for a terminal do not reach us.

    Handlers that do nothing rather than SIG_IGN: the engine starts with the default actions.
    """
    os.setsid()
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    own_log = null
    with suppress(OSError):
        own_log = os.open(run_dir / OWN_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for fd, target in ((0, null), (1, null), (2, own_log)):
        os.dup2(target, fd)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, it would eat exit codes
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def main() -> None:
    """Reads the launch, prints the keeper's pid and leaves it behind as nobody's child."""
    run_dir = Path(sys.argv[1]).absolute()
    launch = json.load(sys.stdin)
    pid = os.fork()
    if pid:
        print(pid, flush=True)
        os._exit(0)
    detach(run_dir)
    Keeper(run_dir, launch).run()


if __name__ == "__main__":
    main()
