"""Protects: machine code of sm_90 that loads nothing before it has waited for earlier launches. The compiler moves loads
of memory that it takes for constant ahead of the wait, which hip-host cannot show. Needs NVRTC."""
import struct
import unittest

from cli_case import Case

# The twelve lowest bits of an instruction.
WAIT = 0x82e  # ACQBULK
LOADS = {0x980: "LD", 0x981: "LDG", 0xfae: "LDGSTS"}
# Small problems, whose variants wait first: those of matrix products may load weights early.
PROBLEMS = (
    ("rmsnorm", "--rows", "5", "--cols", "256"),
    ("add_rmsnorm", "--rows", "5", "--cols", "256"),
    ("softmax", "--rows", "5", "--cols", "300"),
    ("silu_mul", "--rows", "5", "--cols", "256"),
    ("argmax", "--rows", "2", "--cols", "1000"),
    ("attention", "--heads", "4", "--q", "1", "--kv", "64", "--dim", "64"),
    ("attention", "--heads", "4", "--q", "40", "--kv", "64", "--dim", "64", "--variant", "matrix"),
    ("gemm", "--m", "64", "--n", "64", "--k", "64", "--variant", "tiled"),
    ("gemm", "--m", "64", "--n", "64", "--k", "64", "--dtype", "f16", "--variant", "matrix"),
)
# Weights are loaded before the wait, elements of A after it.
EARLY = ("quantized_gemm", "--m", "8", "--n", "4096", "--k", "4096", "--zeros", "groups", "--config",
         "matrix WAVES=8 TN=2 RT=1 UNROLL=2")


def instructions(cubin):
    """Returns the 64 lower bits of the instructions of each kernel of an ELF file of NVIDIA's."""
    at, = struct.unpack_from("<Q", cubin, 0x28)
    count, names = struct.unpack_from("<HH", cubin, 0x3c)
    sections = [struct.unpack_from("<IIQQQQIIQQ", cubin, at + 64 * i) for i in range(count)]
    kernels = []
    for name, _, _, _, offset, size, *_ in sections:
        first = sections[names][4] + name
        if cubin[first:first + 6] == b".text.":
            kernels.append([struct.unpack_from("<Q", cubin, offset + i)[0] for i in range(0, size, 16)])
    return kernels


class MachineCode(Case):
    def loads_before_the_wait(self, *problem):
        file = self.folder / "kernel.co"
        result = self.run_tune("compile", *problem, "--arch", "sm_90", "--code-object", str(file))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        kernels = instructions(file.read_bytes())
        self.assertTrue(kernels)
        for kernel in kernels:
            codes = [word & 0xfff for word in kernel]
            self.assertIn(WAIT, codes, "no wait for earlier launches")
            yield [LOADS[code] for code in codes[:codes.index(WAIT)] if code in LOADS]

    def test_nothing_is_loaded_before_the_wait(self):
        for problem in PROBLEMS:
            with self.subTest(" ".join(problem)):
                for loads in self.loads_before_the_wait(*problem):
                    self.assertEqual(loads, [])

    def test_weights_are_loaded_before_the_wait(self):
        loads, = self.loads_before_the_wait(*EARLY)
        self.assertGreater(len(loads), 0)


if __name__ == "__main__":
    unittest.main()
