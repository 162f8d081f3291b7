"""The kernel's means of confinement that Python does not wrap: namespaces, mounts, Landlock, seccomp, capabilities."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import resource
import struct
from collections.abc import Iterable

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]

NEW_MOUNTS, NEW_NAME, NEW_IPC, NEW_USER, NEW_PIDS, NEW_NET = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
READ_ONLY, NO_SETUID, NO_DEVICES, NO_EXEC, BIND, RECURSIVE, PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
DETACH = 2
DUMPABLE, DROP_BOUND, SECCOMP, SUBREAPER, NO_NEW_PRIVILEGES = 4, 24, 22, 36, 38  # options of prctl

LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446  # the same on all machines
ALL_FILE_RIGHTS = (1 << 16) - 1
ON_FILES = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15  # execute, write, read, truncate, ioctl
READ_RIGHTS = 1 << 0 | 1 << 2 | 1 << 3  # execute, read a file, list a folder
WRITE_RIGHTS = ALL_FILE_RIGHTS & ~(1 << 6 | 1 << 11)  # no device files
TCP_RIGHTS, SCOPES = 3, 3  # bind and connect; abstract sockets and signals
SCOPES_SINCE = 6  # version of Landlock (Linux 6.12)

# What no evaluation needs, and where the kernel's worst faults were found or memory goes uncounted; number of the call
# on x86_64 and on aarch64.
FORBIDDEN = {
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    # keys, programs in the kernel, the machine itself
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "personality": (135, 92),
    # memory that belongs to no process
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
}
MACHINES = {"x86_64": (0, 0xC000003E, 56), "aarch64": (1, 0xC00000B7, 220)}  # column above, name, number of clone
CLONE3 = 435
NAMESPACES = 0x7E020000  # every flag of clone that makes a namespace


def check(result: int, what: str) -> int:
    """The result of a call into the C library; `OSError` where it is -1."""
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    """Leave namespaces of the parent; children are born into the new ones."""
    check(LIBC.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """Mount a file system, or change how one is mounted."""
    check(LIBC.mount(source.encode(), target.encode(), kind.encode(), flags, data.encode()), f"mount {target}")


def unmount(target: str) -> None:
    """Take the uppermost mount off a folder."""
    check(LIBC.umount2(target.encode(), ctypes.c_int(DETACH)), f"umount {target}")


def control(option: int, value: int = 0) -> None:
    """`prctl`."""
    zero = ctypes.c_ulong(0)
    check(LIBC.prctl(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero), f"prctl {option}")


def leave_user(flags: int, uid: int) -> None:
    """Make a user namespace, and those of `flags`; our own user is called `uid` there, and may make no further one."""
    user, group = os.getuid(), os.getgid()
    unshare(NEW_USER | flags)
    for name, text in (
        ("/proc/self/setgroups", "deny"),
        ("/proc/self/uid_map", f"{uid} {user} 1"),
        ("/proc/self/gid_map", f"{uid} {group} 1"),
        ("/proc/sys/user/max_user_namespaces", "0"),
    ):
        with open(name, "w") as file:
            file.write(text)


def drop_capabilities() -> None:
    """Give up every capability, also for programs that are started later."""
    for number in range(64):
        with contextlib.suppress(OSError):
            control(DROP_BOUND, number)
    header, nothing = struct.pack("Ii", 0x20080522, 0), bytes(24)
    check(LIBC.capset(header, nothing), "capset")


def landlock_version() -> int:
    """The version of Landlock that the kernel has, 0 without."""
    return max(0, int(LIBC.syscall(LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(1))))


def landlock(read: Iterable[str] = (), write: Iterable[str] = (), files: bool = True) -> None:
    """Confine this process and its children; it cannot be taken back.

    They may read `read` and change `write` and nothing else (with `files` false: whatever they could before), have no
    TCP, and send signals to and look into processes of this confinement only. Needs Landlock 6.
    """
    handled = (ALL_FILE_RIGHTS, TCP_RIGHTS, SCOPES) if files else (0, TCP_RIGHTS, SCOPES)
    attributes = struct.pack("QQQ", *handled)
    rules = check(
        LIBC.syscall(LANDLOCK_CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0)), "landlock"
    )
    try:
        for paths, rights in ((read, READ_RIGHTS), (write, WRITE_RIGHTS)):
            for path in paths:
                _allow(rules, path, rights)
        control(NO_NEW_PRIVILEGES, 1)
        check(LIBC.syscall(LANDLOCK_RESTRICT, ctypes.c_int(rules), ctypes.c_uint(0)), "landlock")
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            rule = struct.pack("=Qi", rights if os.path.isdir(path) else rights & ON_FILES, place)
            check(LIBC.syscall(LANDLOCK_ADD, ctypes.c_int(rules), ctypes.c_int(1), rule, ctypes.c_uint(0)), path)
        finally:
            os.close(place)


@functools.cache
def filter_program() -> tuple[int, bytes]:
    """The filter of `forbid`: its steps, and their bytes; none for machines that we have no list of."""
    if platform.machine() not in MACHINES:
        return 0, b""
    column, machine, clone = MACHINES[platform.machine()]
    refuse, missing, kill, allow = 0x00050000 | 1, 0x00050000 | 38, 0x80000000, 0x7FFF0000
    load, equal, above, masked, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    # A step: operation, steps to skip if it holds, if it does not, operand.
    program = [(load, 0, 0, 4), (equal, 1, 0, machine), (answer, 0, 0, kill), (load, 0, 0, 0)]
    if column == 0:
        program += [(above, 0, 1, 0x40000000), (answer, 0, 0, kill)]  # the x32 calls: other numbers for the same
    # The C library falls back to clone where clone3 is "not implemented"; its flags lie in memory, out of our sight.
    program += [(equal, 0, 1, CLONE3), (answer, 0, 0, missing)]
    for numbers in FORBIDDEN.values():
        program += [(equal, 0, 1, numbers[column]), (answer, 0, 0, refuse)]
    program += [(equal, 0, 3, clone), (load, 0, 0, 16), (masked, 0, 1, NAMESPACES)]
    program += [(answer, 0, 0, refuse), (answer, 0, 0, allow)]
    return len(program), b"".join(struct.pack("HBBI", *step) for step in program)


def forbid() -> bool:
    """Refuse the system calls of `FORBIDDEN` and new namespaces from now on; False on machines that we have no list of.

    The rest of the confinement holds without it.
    """
    steps, program = filter_program()
    if not steps:
        return False
    code = ctypes.create_string_buffer(program)
    header = struct.pack("HxxxxxxP", steps, ctypes.addressof(code))
    buffer = ctypes.create_string_buffer(header)
    control(NO_NEW_PRIVILEGES, 1)
    zero = ctypes.c_ulong(0)
    check(LIBC.prctl(SECCOMP, ctypes.c_ulong(2), ctypes.byref(buffer), zero, zero), "seccomp")
    return True


def limit(memory: int, disk: int, processes: int | None) -> None:
    """Resource limits: `memory` and `disk` (of one file) in bytes; `processes` of this user here, threads included."""
    limits = {
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_FSIZE: disk,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 256,
    }
    if processes is not None:
        limits[resource.RLIMIT_NPROC] = processes
    for which, value in limits.items():
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))
