"""What tests of operations on one device have in common."""

import numpy as np
from python_case import greta

RANDOM = np.random.default_rng(7)


def values(*shape):
    return RANDOM.standard_normal(shape).astype("float32")


def silu(x):
    return x / (1 + np.exp(-x))


class OneDevice:
    """The runtime of a device, for tests."""
    device = ""

    @classmethod
    def setUpClass(cls):
        cls.runtime = greta.Runtime(cls.device, shipped=False)

    @classmethod
    def tearDownClass(cls):
        cls.runtime.close()

    def check(self, actual, expected, tolerance=1e-4):
        actual = actual.numpy()
        self.assertEqual(actual.shape, expected.shape)
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)

    def make(self, *arrays):
        return [self.runtime.tensor(array) for array in arrays]
