"""Protects: every public name of the package has a docstring and types, and the tutorial notebook's
cells run in order and are stored without outputs."""

import contextlib
import importlib
import inspect
import io
import json
import os
import pkgutil
import shutil
import unittest

from python_case import SOURCE, Case, greta

NOTEBOOK = SOURCE / "docs/tutorial.ipynb"


def modules():
    """Yields the package's modules; those of greta.torch need PyTorch."""
    yield greta
    for found in pkgutil.walk_packages(greta.__path__, "greta.", onerror=lambda name: None):
        if not found.name.startswith("greta.torch") or importlib.util.find_spec("torch"):
            yield importlib.import_module(found.name)


def members(owner, prefix):
    """Yields the functions and classes that a module or class defines, with their names."""
    for name, value in vars(owner).items():
        if name.startswith("_") and name not in ("__init__", "__call__"):
            continue
        if isinstance(value, property):
            value = value.fget
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if not (inspect.isfunction(value) or inspect.isclass(value)) or \
                not value.__module__.startswith("greta"):
            continue
        if inspect.ismodule(owner) and value.__module__ != owner.__name__:
            continue  # documented where it is defined
        yield f"{prefix}.{name}", value
        if inspect.isclass(value):
            yield from members(value, f"{prefix}.{name}")


class Documentation(Case):
    def test_every_public_name_has_a_docstring(self):
        count = 0
        for module in modules():
            self.assertTrue(module.__doc__, module.__name__)
            for name, value in members(module, module.__name__):
                if name.endswith((".__init__", ".__call__")):
                    continue  # their classes' docstrings describe them
                count += 1
                self.assertTrue(inspect.getdoc(value), name)
        self.assertGreater(count, 130)

    def test_every_parameter_and_result_has_a_type(self):
        count = 0
        for module in modules():
            for name, value in members(module, module.__name__):
                if not inspect.isfunction(value):
                    continue
                count += 1
                signature = inspect.signature(value)
                for parameter in signature.parameters.values():
                    if parameter.name not in ("self", "cls"):
                        self.assertIsNot(parameter.annotation, parameter.empty, f"{name}({parameter.name})")
                if value.__name__ != "__init__":
                    self.assertIsNot(signature.return_annotation, signature.empty, name)
        self.assertGreater(count, 110)

    def test_what_is_exported_exists(self):
        for module in modules():
            for name in getattr(module, "__all__", ()):
                self.assertTrue(hasattr(module, name), f"{module.__name__}.{name}")
        self.assertTrue((SOURCE / "runtime/python/greta/py.typed").is_file())


class Notebook(Case):
    def cells(self, kind):
        notebook = json.loads(NOTEBOOK.read_text())
        self.assertEqual((notebook["nbformat"], notebook["nbformat_minor"]), (4, 5))
        return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]

    def test_all_cells_run(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        for name in ("vector_add.jsonc", "vector_add.cu"):
            shutil.copy(SOURCE / "tests/data/kernels" / name, self.folder)
        names, output = {}, io.StringIO()
        for cell in self.cells("code"):
            code = "".join(cell["source"])
            with self.subTest(cell["id"]), contextlib.redirect_stdout(output), \
                    contextlib.redirect_stderr(io.StringIO()):
                exec(compile(code.replace("budget=20", "budget=2, lock=False, flush_mib=1"),
                             cell["id"], "exec"), names)
        self.assertIsInstance(names["result"], greta.TuneResult)
        self.assertEqual(names["again"].report["trials"]["ok"], names["again"].report["trials"]["total"])
        self.assertIn("| exact", output.getvalue())
        self.assertIn("wrong kernels: 0 of", output.getvalue())

    def test_it_is_small_and_has_no_outputs(self):
        self.assertLess(NOTEBOOK.stat().st_size, 10_000)
        code = self.cells("code")
        self.assertGreaterEqual(len(code), 5)
        self.assertGreaterEqual(len(self.cells("markdown")), 5)
        for cell in code:
            self.assertEqual((cell["outputs"], cell["execution_count"]), ([], None))
        ids = [cell["id"] for cell in json.loads(NOTEBOOK.read_text())["cells"]]
        self.assertEqual(len(ids), len(set(ids)))


if __name__ == "__main__":
    unittest.main()
