"""The common part of the tests of greta.torch."""

import torch
from python_case import CACHE, Case, greta

import greta.torch
from greta.torch import execution


class Torch(Case):
    mode = "greta"

    def setUp(self):
        super().setUp()
        torch.manual_seed(5)
        self.addCleanup(setattr, execution, "default_database", execution.default_database)
        execution.default_database = lambda: self.folder / "none.db"  # not the user's
        self.configure(self.mode)

    def configure(self, mode, **others):
        greta.torch.configure(mode=mode, cache=CACHE, db=self.folder / "tuned.db"
                              if (self.folder / "tuned.db").is_file() else None,
                              decisions=self.folder / "frameworks.json", shipped=False, **others)

    def ran(self):
        """Returns the problems that GRETA ran."""
        return [choice.problem for choice in greta.torch.choices() if choice.greta]

    def near(self, result, expected, bound=1e-5):
        self.assertEqual(result.shape, expected.shape)
        self.assertEqual(result.dtype, expected.dtype)
        self.assertLessEqual(float((result.double() - expected.double()).abs().max()), bound)
