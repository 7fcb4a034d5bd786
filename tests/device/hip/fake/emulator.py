#!/usr/bin/env python3
"""Executes kernels for fake HIP devices, in one process that keeps running.

    emulator.py EMULATOR_DIR SOCKET

EMULATOR_DIR contains run_co.py, an instruction emulator for AMD GPUs as a Python library. Every
process that loads the fake library connects to SOCKET and shares memory with this process at the
same addresses. Each connection has a separate address range, whose pages are accessible where the
library has allocated memory.

A message is a line of JSON, followed by `bytes` bytes if it contains that field. Calls: allow and
forbid (a range of memory; no answer), load (a code object), unload (no answer), launch. Answers are
a line of JSON.
"""
import ctypes
import json
import mmap
import os
import pathlib
import re
import socket
import sys
import threading

RANGE = 1 << 38  # addresses of a connection
FIRST = 0x110000000000  # above the range that sanitizers reserve
RANGES = 128
MAP_SHARED, MAP_NORESERVE, MAP_FIXED_NOREPLACE = 0x01, 0x4000, 0x100000

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

free_ranges = list(range(RANGES))
emulating = threading.Lock()  # an emulator may have process-wide state, as its compiler does


class Memory:
    """The address range of a connection, and the file that both ends share."""

    def __init__(self):
        self.slot = free_ranges.pop(0)
        self.base = FIRST + self.slot * RANGE
        self.file = os.memfd_create("greta-fake-hip")
        os.ftruncate(self.file, RANGE)
        at = libc.mmap(self.base, RANGE, 0, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, self.file, 0)
        if at != self.base:
            raise MemoryError(f"addresses from {self.base:#x} are taken")
        self.allowed = {}

    def protect(self, offset, size, access):
        if libc.mprotect(self.base + offset, size, access):
            raise MemoryError(os.strerror(ctypes.get_errno()))

    def close(self):
        libc.munmap(self.base, RANGE)
        os.close(self.file)
        free_ranges.append(self.slot)

    def explain(self, message):
        """Describes the place of an address outside all buffers of the emulator."""
        found = re.search(r"memory fault at (0x[0-9a-f]+) \(in no buffer\)", message)
        if not found or not self.allowed:
            return message
        address = int(found[1], 16) - self.base
        offset, size = min(self.allowed.items(), key=lambda one: min(abs(address - one[0]), abs(address - one[0] - one[1])))
        return message.replace("in no buffer", f"byte {address - offset} of an allocation of {size} bytes")


class Connection:
    def __init__(self, end, emulator):
        self.end, self.emulator = end, emulator
        self.file = end.makefile("rwb")
        self.memory = Memory()
        self.loaded, self.next = {}, 1

    def serve(self):
        try:
            socket.send_fds(self.end, [f"{self.memory.base} {RANGE}\n".encode()], [self.memory.file])
            for line in self.file:
                call = json.loads(line)
                payload = self.file.read(call.get("bytes", 0))
                answer = getattr(self, call["call"])(call, payload)
                if answer is not None:
                    self.file.write(json.dumps(answer).encode() + b"\n")
                    self.file.flush()
        except (BrokenPipeError, ConnectionResetError):
            pass  # the connected process was killed
        finally:
            self.memory.close()
            self.end.close()

    def allow(self, call, _):
        self.memory.protect(call["offset"], call["pages"], mmap.PROT_READ | mmap.PROT_WRITE)
        self.memory.allowed[call["offset"]] = call["size"]

    def forbid(self, call, _):
        self.memory.protect(call["offset"], call["pages"], 0)
        self.memory.allowed.pop(call["offset"])

    def load(self, _, payload):
        try:
            with emulating:
                self.loaded[self.next] = self.emulator.CodeObject(payload)
        except self.emulator.EmuError as error:
            return {"error": "unsupported", "message": str(error)}
        self.next += 1
        return {"module": self.next - 1}

    def unload(self, call, _):
        del self.loaded[call["module"]]

    def launch(self, call, block):
        code = self.loaded[call["module"]]
        explicit = [a for a in code.kernels[call["kernel"]].get(".args", []) if not a[".value_kind"].startswith("hidden_")]
        arguments = [block[a[".offset"]:a[".offset"] + a[".size"]] for a in explicit]
        try:
            with emulating:
                done = code.run(call["kernel"], call["grid"], call["block"], arguments, lds=call["shared"], threads=1)
        except self.emulator.KernelFault as fault:
            kind = "endless" if str(fault).startswith("more than") else "fault"
            return {"error": kind, "message": self.memory.explain(str(fault).splitlines()[0])}
        except self.emulator.EmuError as error:
            return {"error": "unsupported", "message": str(error).splitlines()[0]}
        return {"instructions": done["wave_insts"]}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.path.insert(0, sys.argv[1])
    import run_co
    path = pathlib.Path(sys.argv[2])
    early = path.with_name(path.name + ".new")  # when the final name exists, the server is listening
    early.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(early))
    listening.listen(RANGES)
    early.rename(path)
    while True:
        end, _ = listening.accept()
        threading.Thread(target=Connection(end, run_co).serve, daemon=True).start()


main()
