"""Run a command that gets no extended registers of the processes that it traces.

    python evaluation/kernel_farm/hide_xstate.py COMMAND...

User-mode-linux before 6.13 keeps the registers of a guest's process in 2,696 bytes. Those of a processor
with AMX take 11,008, so such a kernel panics at its first process ("ptrace set fp regs failed"). Where it
is refused them, it keeps those of SSE, which suffice for programs that use no others (`ONLY_SSE`).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from typing import Final

ONLY_SSE: Final = "glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-AVX_Fast_Unaligned_Load"
"""GLIBC_TUNABLES by which functions of the C library use SSE."""

PR_SET_NO_NEW_PRIVS: Final = 38
PR_SET_SECCOMP: Final = 22
SECCOMP_MODE_FILTER: Final = 2
# struct sock_filter: opcode, jumps if true and if false, operand; operands of loads are offsets in struct
# seccomp_data
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
PROGRAM: Final = b"".join(
    struct.pack("@HBBI", *instruction)
    for instruction in (
        (LOAD, 0, 0, 0),  # number of the system call
        (JUMP_IF_EQUAL, 0, 5, 101),  # ptrace
        (LOAD, 0, 0, 16),  # its request
        (JUMP_IF_EQUAL, 0, 3, 0x4204),  # PTRACE_GETREGSET
        (LOAD, 0, 0, 32),  # which registers
        (JUMP_IF_EQUAL, 0, 1, 0x202),  # NT_X86_XSTATE
        (RETURN, 0, 0, 0x00050000 | errno.EIO),  # SECCOMP_RET_ERRNO
        (RETURN, 0, 0, 0x7FFF0000),  # SECCOMP_RET_ALLOW
    )
)


def hide_xstate() -> None:
    """Install the filter for this process and those that it starts."""
    instructions = ctypes.create_string_buffer(PROGRAM)
    # struct sock_fprog: how many instructions, and where
    program = struct.pack("@HP", len(PROGRAM) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program
    ):
        raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")


if __name__ == "__main__":
    hide_xstate()
    os.execvp(sys.argv[1], sys.argv[1:])
