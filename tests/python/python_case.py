"""Common parts of the tests of the Python package: its libraries and a temporary folder."""

import os
import pathlib
import shutil
import sys
import tempfile
import unittest
from unittest import mock

SOURCE = pathlib.Path(os.environ["GRETA_SOURCE"])
sys.path[:0] = [str(SOURCE / "runtime/python"), str(SOURCE / "tests/cli")]

import cli_case  # noqa: E402
import greta  # noqa: E402

LIBRARY = os.environ["GRETA_LIBRARY"]
TUNER = os.environ["GRETA_TUNER_LIBRARY"]
greta.load(LIBRARY, TUNER)
# Compiled kernels, which tests share with those of the tools.
CACHE = cli_case.CACHE / "greta"


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="greta_python_")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        # No test depends on the user's database and descriptions.
        own = mock.patch.dict(os.environ, XDG_DATA_HOME=str(self.folder / "share"),
                              XDG_CONFIG_HOME=str(self.folder / "config"))
        own.start()
        self.addCleanup(own.stop)

    def know_ceilings(self, devices):
        """Creates the database tuned.db with the peaks of these devices, which take seconds to measure."""
        shipped = self.folder / "shipped"
        shipped.mkdir()
        env = dict(os.environ, HOME=str(self.folder), XDG_CACHE_HOME=str(cli_case.CACHE), GRETA_SHIPPED=str(shipped))
        shutil.copy(cli_case.database_of_ceilings(devices, env), self.folder / "tuned.db")

    def assert_refused(self, error, message, call, *arguments, **options):
        """Checks that a call raises exactly this class, with one line that matches."""
        with self.assertRaisesRegex(error, message) as caught:
            call(*arguments, **options)
        self.assertIs(type(caught.exception), error)
        self.assertEqual(len(str(caught.exception).splitlines()), 1)
