"""Protects: runtimes, tensors, queues, pipelines and memory of other libraries in Python. A mistake
is an exception with one line, and memory is released after its last use."""

import array
import ctypes
import gc
import unittest
import weakref
from unittest import mock

import numpy as np
from python_case import Case, greta

from greta import _library, tensor as tensors

HOST, VULKAN = "hip-host:0", "vulkan:0"
LIB = _library.runtime_library()


class Producer:
    """An object that passes an array's memory through DLPack alone."""

    def __init__(self, values, device=(1, 0)):
        self.values, self.device, self.stream = values, device, "not asked"

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        self.stream = stream
        return self.values.__dlpack__()


class OnGpu:
    def __init__(self, interface):
        self.__cuda_array_interface__ = interface


class Opened(Case):
    device = HOST

    def setUp(self):
        super().setUp()
        self.runtime = greta.Runtime(self.device, shipped=False)
        self.addCleanup(self.runtime.close)


class Runtimes(Case):
    def test_a_context_closes_and_later_calls_are_one_line(self):
        with greta.Runtime(HOST) as runtime:
            self.assertEqual(runtime.device, HOST)
            tensor = runtime.tensor(np.arange(4, dtype="float32"))
            self.assertIn(runtime.name, repr(runtime))
        self.assert_refused(greta.InvalidArgumentError, "^the runtime is closed$", runtime.empty, 4)
        self.assertEqual(tensor.numpy().tolist(), [0, 1, 2, 3])  # keeps the device open

    def test_packing_is_a_question_of_the_look_up(self):
        product = "quantized_gemm dtype=f16 m={} n=64 k=256"
        with greta.Runtime(HOST, shipped=False) as runtime:
            answer = runtime.packing([product.format(1), product.format(16)], weights=[3, 1])
            self.assertEqual((answer["packing"], answer["measured"]), ("rows", False))
            self.assertEqual(answer["reason"], "rows: 2 of 2 products are not measured in both packings")
            self.assertEqual([one["problem"].split()[-3] for one in answer["products"]], ["m=1", "m=16"])
            odd = runtime.packing(["quantized_gemm dtype=f16 m=1 n=24 k=256"], predict=True)
            self.assertEqual((odd["packing"], odd["products"]), ("rows", []))
            self.assertIn("must be a multiple of 16", odd["reason"])
            self.assert_refused(greta.InvalidArgumentError, "for products whose weights may be rows or panels, with packing=rows",
                                runtime.packing, ["softmax rows=4 cols=4"])
            self.assert_refused(greta.InvalidArgumentError, "weights has 1 numbers for 2 products", runtime.packing,
                                [product.format(1)] * 2, [1])
            self.assert_refused(greta.InvalidArgumentError, "products is one text", runtime.packing, product.format(1))

    def test_rules_force_what_runs(self):
        rule = "softmax cols>=64: streamed"
        with greta.Runtime(HOST, shipped=False, use=[rule]) as runtime:
            runtime.use("gelu: flat")
            answer = runtime.lookup("softmax rows=16 cols=64")
            self.assertRegex(answer["config"], "^streamed ")
            self.assertEqual((answer["origin"], answer["rule"]), ("forced", rule))
            self.assertEqual(runtime.lookup("softmax rows=16 cols=32")["origin"], "default")
            chain = runtime.lookup("gate_up rows=512 hidden=1376 dim=512")
            self.assertEqual((chain["config"], chain["origin"]), ("parts", "default"))
            self.assertEqual(runtime.lookup("gate_up rows=1 hidden=1376 dim=512")["config"], "fused")
            self.assertEqual(runtime.rules(), [{"rule": rule, "matched": True, "decided": True},
                                               {"rule": "gelu: flat", "matched": False, "decided": False}])
            data = np.random.default_rng(1).random((4, 64), dtype="float32")
            x, y = runtime.tensor(data), runtime.empty((4, 64))
            runtime.softmax(x, y)
            runtime.synchronize()
            expected = np.exp(data) / np.exp(data).sum(axis=1, keepdims=True)
            np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5)
            self.assert_refused(greta.InvalidArgumentError, "is prepared already", runtime.use, "softmax: held")
        self.assert_refused(greta.InvalidArgumentError, "did you mean softmax", greta.Runtime, HOST,
                            use=["softmx: held"])
        self.assert_refused(greta.InvalidArgumentError, "use is one text", greta.Runtime, HOST, use=rule)

    def test_overlap_is_switched_off_by_the_caller_alone(self):
        """Results are the same, so that only what reaches the library can show it."""
        for chosen, off in (({}, 0), ({"overlap": True}, 0), ({"overlap": False}, 1)):
            with mock.patch.object(LIB, "call", wraps=LIB.call) as calls:
                greta.Runtime(HOST, shipped=False, **chosen).close()
            opened = [call.args[1]._obj for call in calls.call_args_list if call.args[0] == "greta_runtime_open"]
            self.assertEqual([options.no_overlap for options in opened], [off])

    def test_bad_options(self):
        self.assert_refused(greta.UnavailableError, "no such card", greta.Runtime, "no such card")
        self.assert_refused(greta.FileError, "absent.db", greta.Runtime, HOST,
                            self.folder / "absent.db")
        self.assert_refused(greta.FileError, "other.db", greta.Runtime, HOST,
                            application=[self.folder / "other.db"])

    def test_kernels_are_compiled_in_advance_into_the_cache(self):
        with greta.Runtime(HOST, cache=self.folder, shipped=False) as runtime:
            runtime.precompile(["add dtype=f32 out=f32 rows=8 cols=8"], jobs=1)
            self.assert_refused(greta.InvalidArgumentError, "fft", runtime.precompile, ["fft n=2"])
            self.assert_refused(greta.InvalidArgumentError, "one text", runtime.precompile, "add")
        self.assertTrue(any(file.is_file() for file in self.folder.rglob("*")))


class Tensors(Opened):
    def test_types_and_shapes(self):
        for dtype, name in (("float32", "f32"), ("float16", "f16"), ("int32", "i32")):
            content = np.arange(24, dtype=dtype).reshape(2, 3, 4)
            tensor = self.runtime.tensor(content)
            self.assertEqual((tensor.dtype, tensor.shape, tensor.strides, tensor.nbytes),
                             (name, (2, 3, 4), (12, 4, 1), content.nbytes))
            np.testing.assert_array_equal(tensor.numpy(), content)
        self.assertEqual(self.runtime.tensor(array.array("f", [1, 2])).numpy().tolist(), [1, 2])
        turned = np.arange(6, dtype="float32").reshape(2, 3).T
        np.testing.assert_array_equal(self.runtime.tensor(turned).numpy(), turned)

    def test_bf16_is_rounded_to_nearest_even(self):
        given = np.array([1, 1 + 2**-8, 1 + 3 * 2**-8, -2.5, np.inf, np.nan], "float32")
        tensor = self.runtime.tensor(given, "bf16")
        self.assertEqual(tensor.dtype, "bf16")
        np.testing.assert_array_equal(tensor.numpy(),
                                      np.array([1, 1, 1 + 2**-6, -2.5, np.inf, np.nan], "float32"))
        bits = self.runtime.tensor(np.array([0x3F80, 0x4000], "uint16"), "bf16")
        self.assertEqual(bits.numpy().tolist(), [1, 2])

    def test_views(self):
        content = np.arange(24, dtype="float32").reshape(4, 6)
        tensor = self.runtime.tensor(content)
        part = tensor[1:3, 2:]
        self.assertEqual((part.shape, part.strides, part.contiguous), ((2, 4), (6, 1), False))
        self.assertEqual(part.address - tensor.address, 8 * 4)
        np.testing.assert_array_equal(tensor[2:].numpy(), content[2:])
        np.testing.assert_array_equal(tensor.reshape(2, 12).numpy(), content.reshape(2, 12))
        self.assert_refused(greta.InvalidArgumentError, "is not packed", part.numpy)
        self.assert_refused(greta.InvalidArgumentError, "not contiguous", part.reshape, 8)
        for index in (0, (slice(0, 1),) * 3, slice(0, 4, 2), slice(3, 3)):
            self.assert_refused(greta.InvalidArgumentError, "", tensor.__getitem__, index)
        self.assert_refused(greta.InvalidArgumentError, "^9:12 has no index of dimension 0 of <greta.Tensor f32",
                            tensor.__getitem__, slice(9, 12))

    def test_released_tensors_and_closed_queues_are_refused(self):
        one = [self.runtime.tensor(np.ones(shape, "float32")) for shape in ((4, 8), (8, 4), (4, 4), (4,))]
        a, b, c, bias = one
        bias.release()
        # As an operand that may be absent, too: the product would lack its bias without a word.
        self.assert_refused(greta.InvalidArgumentError, "f32 .4. on .* is released", self.runtime.gemm, a, b, c, bias=bias)
        self.assert_refused(greta.InvalidArgumentError, "is released", bias.numpy)
        queue, pipeline = self.runtime.queue(), self.runtime.pipeline()
        queue.close()
        pipeline.close()
        self.assert_refused(greta.InvalidArgumentError, "^the queue is closed$", queue.gemm, a, b, c)
        self.assert_refused(greta.InvalidArgumentError, "^the queue is closed$", queue.submit)
        self.assert_refused(greta.InvalidArgumentError, "^the pipeline is closed$", pipeline.gemm, a, b, c)

    def test_the_host_writes_staging_memory_in_place(self):
        tensor = self.runtime.empty((2, 2), staging=True)
        view = tensor.host()
        self.assertEqual((view.format, view.shape), ("f", (2, 2)))
        np.asarray(view)[:] = [[1, 2], [3, 4]]
        self.assertEqual(tensor.numpy().tolist(), [[1, 2], [3, 4]])

    def test_what_is_no_tensor(self):
        empty, tensor = self.runtime.empty, self.runtime.tensor
        self.assert_refused(greta.InvalidArgumentError, "f8.*f32, f16, bf16, i32, f64", empty, 4, "f8")
        self.assert_refused(greta.InvalidArgumentError, "shape", empty, (2, 0))
        self.assert_refused(greta.InvalidArgumentError, "list of integers", empty, (2, 1.5))
        self.assert_refused(greta.InvalidArgumentError, "rank is 5", empty, (1,) * 5)
        self.assert_refused(greta.InvalidArgumentError, "format 'H'", tensor, np.zeros(3, "uint16"))
        self.assert_refused(greta.InvalidArgumentError, "format 'f'", tensor,
                            np.zeros(3, "float32"), "f16")
        self.assert_refused(greta.InvalidArgumentError, "a list without a buffer", tensor, [1.0])
        self.assert_refused(greta.OutOfMemoryError, "", empty, (1 << 20, 1 << 20, 16))
        self.assert_refused(greta.InvalidArgumentError, "has 16 bytes", empty(4).upload, b"123")


class Queues(Opened):
    def test_work_is_ordered_and_copies_wait_for_it(self):
        queue = self.runtime.queue()
        a = self.runtime.tensor(np.ones(64, "float32"))
        b = self.runtime.empty(64)
        for _ in range(20):
            queue.add(a, a, b)
            queue.add(b, b, a)
        self.assertEqual(set(a.numpy().tolist()), {4.0**20})
        queue.synchronize(5)
        self.assert_refused(greta.InvalidArgumentError, "seconds is -1", queue.synchronize, -1)
        queue.close()
        queue.close()
        self.assert_refused(greta.InvalidArgumentError, "the queue is closed", queue.submit)

    def test_a_stream_of_another_library(self):
        first = self.runtime.queue()
        second = self.runtime.queue(stream=first.stream)
        self.assertEqual(first.stream, second.stream)
        x, y = np.ones(64, "float32"), np.zeros(64, "float32")
        second.add(x, x, y)  # submitted at once
        first.add(y, y, x)
        first.synchronize()
        self.assertEqual(set(x.tolist()), {4.0})
        second.close()
        first.close()

    def test_objects_of_two_runtimes_do_not_mix(self):
        with greta.Runtime(HOST) as other:
            foreign, own = other.empty(4), self.runtime.empty(4)
            self.assert_refused(greta.InvalidArgumentError, "a belongs to another runtime",
                                self.runtime.add, foreign, own, own)


class Pipelines(Opened):
    def test_a_graph_replays_with_changed_staging_memory(self):
        staged = self.runtime.empty((4, 8), staging=True)
        out = self.runtime.empty((4, 8))
        with self.runtime.pipeline() as pipeline:
            copied, kept = pipeline.temporary((4, 8)), pipeline.temporary((4, 8), "f32")
            pipeline.copy(copied, staged)
            pipeline.label("the only layer")
            pipeline.add(copied, copied, kept)
            pipeline.keep(kept)
            pipeline.add(kept, copied, out)
            self.assert_refused(greta.InvalidArgumentError, "not a temporary", pipeline.keep, out)
            graph = pipeline.finish()
        for factor in (1, 2):
            np.asarray(staged.host())[:] = factor
            graph.replay()
            self.assertEqual(set(out.numpy().ravel().tolist()), {3.0 * factor})
            self.assertEqual(set(kept.numpy().ravel().tolist()), {2.0 * factor})
        self.assertIn("the only layer | add dtype=f32", graph.explain())
        self.assertGreaterEqual(graph.memory[0], 2 * 128)


class PreparedProblems(Opened):
    """greta_runtime_prepare() and greta_queue_run(), which greta.torch uses."""

    def prepare(self, problem, runtime=None):
        made = ctypes.c_void_p()
        LIB.call("greta_runtime_prepare", (runtime or self.runtime)._handle, problem.encode(), ctypes.byref(made))
        return made

    def run_on(self, prepared, *addresses):
        LIB.call("greta_queue_run", self.runtime.default_queue._handle, prepared,
                 (ctypes.c_uint64 * len(addresses))(*addresses), len(addresses))

    def test_a_problem_runs_on_addresses(self):
        x = np.random.default_rng(3).standard_normal((8, 16)).astype("float32")
        a, b = self.runtime.tensor(x), self.runtime.empty((8, 16))
        prepared = self.prepare("softmax rows=8 cols=16 dtype=f32")
        self.assertEqual(self.prepare("softmax dtype=f32 out=f32 rows=8 cols=16").value, prepared.value)
        self.run_on(prepared, a.address, b.address)
        self.runtime.synchronize()
        expected = np.exp(x) / np.exp(x).sum(1, keepdims=True)
        np.testing.assert_allclose(b.numpy(), expected, rtol=1e-5)

    def test_columns_of_one_matrix(self):
        x = np.random.default_rng(4).standard_normal((8, 32)).astype("float32")
        a = self.runtime.tensor(x)
        prepared = self.prepare("softmax rows=8 cols=16 dtype=f32 x_stride=32 y_stride=32")
        key = self.runtime.problem("softmax rows=8 cols=16 dtype=f32 x_stride=32 y_stride=32")
        self.assertIn('x_stride="32"', key)  # and keys are problems
        self.assertEqual(self.prepare(key).value, prepared.value)
        self.run_on(prepared, a.address, a.address + 64)
        self.runtime.synchronize()
        expected = np.exp(x[:, :16]) / np.exp(x[:, :16]).sum(1, keepdims=True)
        np.testing.assert_allclose(a.numpy()[:, 16:], expected, rtol=1e-5)
        self.assert_refused(greta.InvalidArgumentError, "Y is written and overlaps X", self.run_on, prepared,
                            a.address, a.address + 32)

    def test_what_can_not_run_is_one_line(self):
        a = self.runtime.empty((16, 16))
        prepared = self.prepare("softmax rows=8 cols=16 dtype=f32")
        for message, addresses in (
                ("1 operands, it has 2", (a.address,)), ("Y has no address", (a.address, 0)),
                ("X is at address .*, but it must be at a multiple of 16", (a.address + 4, a.address + 512)),
                ("Y is written and overlaps X", (a.address, a.address + 256))):
            self.assert_refused(greta.InvalidArgumentError, message, self.run_on, prepared, *addresses)
        self.assert_refused(greta.InvalidArgumentError, "prepared is null", self.run_on, None, a.address)
        self.assert_refused(greta.InvalidArgumentError, "no operation 'fft'", self.prepare, "fft n=2")
        with greta.Runtime("hip-host:0", shipped=False) as other:
            self.assert_refused(greta.InvalidArgumentError, "prepared belongs to another runtime", self.run_on,
                                self.prepare("softmax rows=8 cols=16 dtype=f32", other), a.address, a.address + 512)


class ForeignMemory(Opened):
    def test_arrays_are_used_in_place_and_released_after_the_last_use(self):
        x = np.ones((8, 8), "float32")
        x += np.arange(8)
        y = np.zeros((8, 4), "float32")
        gone = weakref.ref(x)
        queue = self.runtime.queue()
        queue.softmax(x[:, 4:], y)
        expected = np.exp(np.arange(-3.0, 1) * np.ones((8, 1)))
        expected /= expected.sum(1, keepdims=True)
        del x
        gc.collect()
        self.assertIsNotNone(gone())  # work in flight may use it
        queue.synchronize()
        gc.collect()
        self.assertIsNone(gone())
        self.assertEqual(tensors._in_use, {})
        np.testing.assert_allclose(y, expected, rtol=1e-5)

    def test_dlpack(self):
        x = np.arange(12, dtype="float16").reshape(3, 4)
        tensor = self.runtime.wrap(Producer(x))
        self.assertEqual((tensor.dtype, tensor.shape), ("f16", (3, 4)))
        self.assertEqual(tensor.address, x.ctypes.data)
        x[0, 0] = 7
        self.assertEqual(tensor.numpy()[0, 0], 7)
        tensor.release()
        self.assertEqual(tensors._in_use, {})

    def test_what_can_t_be_used_in_place(self):
        wrap = self.runtime.wrap
        x = np.zeros((4, 4), "float32")
        for given, message in (
                ([1.0], "is a list, which has neither DLPack"),
                (np.zeros(4, "complex64"), "elements of type Zf"),
                (x.T, "strides"), (x[::-1], "strides"), (x[:0], "can't be used in place"),
                (Producer(np.zeros(4, "complex64")), "elements of type"),
                (Producer(x, (2, 0)), "memory of a GPU"), (Producer(x, (7, 0)), "kind 7"),
                (b"12345678", "read-only")):
            self.assert_refused(greta.InvalidArgumentError, message, wrap, given)
        x.flags.writeable = False
        self.assert_refused(greta.InvalidArgumentError, "read-only", wrap, x)
        gpu = OnGpu({"shape": (4,), "typestr": "<f4", "data": (4096, False), "version": 3})
        self.assert_refused(greta.InvalidArgumentError, "memory of a GPU", wrap, gpu)
        self.assertEqual(tensors._in_use, {})
        self.assertFalse(hasattr(self.runtime.empty(4), "__cuda_array_interface__"))

    def test_overlap_is_found_between_arrays(self):
        x = np.zeros((4, 16), "float32")
        self.assert_refused(greta.InvalidArgumentError, "overlaps", self.runtime.softmax, x[:2], x[1:3])
        self.runtime.softmax(x, x)
        self.runtime.synchronize()
        self.assertEqual(x[0, 0], np.float32(1 / 16))

    def test_a_graph_keeps_what_it_uses(self):
        x, y = np.ones(16, "float32"), np.zeros(16, "float32")
        gone = weakref.ref(x)
        pipeline = self.runtime.pipeline()
        pipeline.add(x, x, y)
        graph = pipeline.finish()
        pipeline.close()
        del x
        gc.collect()
        graph.replay()
        self.runtime.synchronize()
        self.assertEqual(y[0], 2)
        graph.close()
        gc.collect()
        self.assertIsNone(gone())


class OnVulkan(Opened):
    device = VULKAN

    def test_host_memory_is_copied_or_refused(self):
        x = np.ones((4, 16), "float32")
        out = self.runtime.empty((4, 16))
        self.assert_refused(greta.InvalidArgumentError, r"x is in host memory.*runtime\.tensor\(\)",
                            self.runtime.softmax, x, out)
        self.runtime.softmax(self.runtime.tensor(x), out)
        np.testing.assert_allclose(out.numpy(), 1 / 16)

    def test_streams_are_refused(self):
        self.assert_refused(greta.UnavailableError, "streams of other libraries",
                            self.runtime.queue, 0)
        with self.assertRaises(greta.UnavailableError):
            self.runtime.queue().stream


if __name__ == "__main__":
    unittest.main()
