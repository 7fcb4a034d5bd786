"""The interface of an emulator that emulator.py needs, for a single kernel: work(float* to, float
value, int count) fills."""
import ctypes
import struct
import time


class EmuError(RuntimeError):
    pass


class KernelFault(EmuError):
    pass


class CodeObject:
    launches = 0  # in flight
    kernels = {"work": {".args": [
        {".offset": 0, ".size": 8, ".value_kind": "by_value"},
        {".offset": 8, ".size": 4, ".value_kind": "by_value"},
        {".offset": 12, ".size": 4, ".value_kind": "by_value"},
        {".offset": 16, ".size": 8, ".value_kind": "hidden_block_count_x"}]}}

    def __init__(self, elf):
        if elf[:4] != b"\x7fELF":
            raise EmuError("no ELF file")

    def run(self, kernel, grid, block, arguments, lds, threads):
        if CodeObject.launches:
            raise RuntimeError("two launches at once")
        CodeObject.launches += 1
        try:
            return self.execute(grid, block, *struct.unpack("<Qfi", b"".join(arguments)))
        finally:
            CodeObject.launches -= 1

    def execute(self, grid, block, to, value, count):
        if count == -1:
            raise KernelFault(f"memory fault at {to:#x} (in no buffer) in workgroup 0")
        if count == -2:
            raise KernelFault("more than 50000000 instructions in one wave")
        if count == -3:
            raise EmuError("no such instruction")
        if count == -4:
            time.sleep(0.2)
            count = 0
        (ctypes.c_float * count).from_address(to)[:] = [value] * count
        return {"wave_insts": 1000 * grid[0] * block[0]}
