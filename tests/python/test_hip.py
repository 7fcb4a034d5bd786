"""Protects: on `hip` devices, memory and streams of another library are used in place, in the
stream's order, and while the stream captures a graph. The other library is the fake of AMD's, which
runs copies, and whose memory and streams this test creates itself; it reports invalid calls."""

import ctypes
import os
import subprocess
import sys
import unittest

import numpy as np
from python_case import Case, cli_case, greta

HIP = ctypes.CDLL("libamdhip64.so.7")
CAPTURE_RELAXED, COPY_DEFAULT = 2, 4


def hip(name, *arguments):
    function = getattr(HIP, name)
    function.restype = ctypes.c_int
    status = function(*arguments)
    assert status == 0, f"{name}: {status}"


class Array:
    """Memory from hipMalloc, as another library would describe it."""

    def __init__(self, shape, typestr="<f4", strides=None):
        pointer = ctypes.c_void_p()
        hip("hipMalloc", ctypes.byref(pointer), ctypes.c_size_t(4096))
        self.address = pointer.value
        self.__cuda_array_interface__ = {"version": 3, "shape": shape, "typestr": typestr,
                                         "data": (self.address, False), "strides": strides}


class OnRocm:
    """An object with DLPack alone, that says where it is."""

    def __init__(self, index):
        self.index, self.stream = index, None

    def __dlpack_device__(self):
        return (10, self.index)

    def __dlpack__(self, stream=None):
        self.stream = stream
        return np.zeros(4, "float32").__dlpack__()


class HipMemory(Case):
    def setUp(self):
        super().setUp()
        self.runtime = greta.Runtime("hip:0", shipped=False)
        self.addCleanup(self.runtime.close)
        stream = ctypes.c_void_p()
        hip("hipStreamCreateWithFlags", ctypes.byref(stream), ctypes.c_uint(1))
        self.stream = stream

    def test_another_library_s_memory_and_stream(self):
        x, y = Array((4, 8)), Array((32,))
        given = np.arange(32, dtype="float32").reshape(4, 8)
        wrapped = self.runtime.wrap(x)
        self.assertEqual(wrapped.address, x.address)
        wrapped.upload(given)
        queue = self.runtime.queue(stream=self.stream.value)
        self.assertEqual(queue.stream, self.stream.value)
        queue.copy(y, x)
        queue.synchronize()
        np.testing.assert_array_equal(self.runtime.wrap(y).numpy(), given.ravel())
        queue.close()
        hip("hipStreamDestroy", self.stream)  # GRETA did not

    def test_a_stream_that_captures_a_graph(self):
        x, y = self.runtime.wrap(Array((32,))), self.runtime.wrap(Array((32,)))
        queue = self.runtime.queue(stream=self.stream.value)
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        queue.copy(y, x)
        queue.synchronize()
        hip("hipStreamBeginCapture", self.stream, ctypes.c_int(CAPTURE_RELAXED))
        for _ in range(20):
            queue.copy(y, x)
        hip("hipStreamEndCapture", self.stream, ctypes.byref(graph))
        hip("hipGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
        for factor in (1, 2):
            x.upload(np.full(32, factor, "float32"))
            hip("hipGraphLaunch", executable, self.stream)
            queue.synchronize()
            self.assertEqual(set(y.numpy().tolist()), {factor})
        hip("hipGraphExecDestroy", executable)
        hip("hipGraphDestroy", graph)

    def test_dlpack_waits_for_the_queue_s_stream_and_names_the_gpu(self):
        own, other = OnRocm(0), OnRocm(1)
        self.runtime.wrap(own, stream=self.stream.value)
        self.assertEqual(own.stream, self.stream.value)
        self.assert_refused(greta.InvalidArgumentError, "is on GPU 1, not on hip:0",
                            self.runtime.wrap, other)
        self.assert_refused(greta.InvalidArgumentError, "in host memory, which hip:0",
                            self.runtime.wrap, np.zeros(4, "float32"))
        self.assert_refused(greta.InvalidArgumentError, "elements of type <c8", self.runtime.wrap,
                            Array((4,), "<c8"))
        self.assert_refused(greta.InvalidArgumentError, "not whole elements", self.runtime.wrap,
                            Array((4, 2), "<f4", (9, 4)))

    def test_own_tensors_are_described_to_others(self):
        tensor = self.runtime.empty((4, 8), "f16")
        described = tensor[1:, 2:6].__cuda_array_interface__
        self.assertEqual(described["data"], (tensor.address + 2 * (8 + 2), False))
        self.assertEqual((described["shape"], described["strides"], described["typestr"]),
                         ((3, 4), (16, 2), "<f2"))
        again = self.runtime.wrap(Described(tensor))
        self.assertEqual(again.address, tensor.address)


class Described:
    def __init__(self, tensor):
        self.__cuda_array_interface__ = tensor.__cuda_array_interface__


class NoInvalidCalls(Case):
    """The fake reports invalid calls on standard error."""

    def test_no_call_is_invalid(self):
        run = subprocess.run([sys.executable, "-B", __file__, "HipMemory"], capture_output=True,
                             text=True, timeout=cli_case.limit(120), env=dict(os.environ))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("fake HIP:", run.stderr)
        self.assertIn("Ran 4 tests", run.stderr)


if __name__ == "__main__":
    unittest.main()
