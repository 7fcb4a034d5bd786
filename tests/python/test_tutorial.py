"""Protects: the Python code of docs/python.md runs as documented, with smaller budgets."""

import contextlib
import io
import os
import re
import shutil
import unittest

from python_case import SOURCE, Case, greta


class PythonTutorial(Case):
    def blocks(self):
        text = (SOURCE / "docs/python.md").read_text()
        return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)

    def test_all_code(self):
        blocks = self.blocks()
        self.assertGreaterEqual(len(blocks), 8)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        for name in ("vector_add.jsonc", "vector_add.cu"):
            shutil.copy(SOURCE / "tests/data/kernels" / name, self.folder)
        names, output = {}, io.StringIO()
        for block in blocks:
            code = re.sub(r'budget="\d+s"', "budget=2, lock=False, flush_mib=1", block)
            code = code.replace("budget=3", "budget=1, lock=False, flush_mib=1")
            with self.subTest(block), contextlib.redirect_stdout(output):
                exec(compile(code, "docs/python.md", "exec"), names)
        text = output.getvalue()
        self.assertRegex(text, r"B is f32 \[48, 40\], but it must be f32 of 40 x 48|must be f32 of 40")
        self.assertRegex(text, r"first layer \| gemm .*\| exact")
        self.assertIn("softmax dtype=f32 out=f32 rows=16 cols=64", text)
        self.assertIn("vector_add dtype=f32 out=f32 n=5000 described BLOCK=", text)
        self.assertEqual(names["add"].reference.function, names["total"])
        self.assertIsInstance(names["result"], greta.TuneResult)
        self.assertTrue((self.folder / "tuned.db").is_file())

    def test_what_the_text_names_exists(self):
        text = (SOURCE / "docs/python.md").read_text()
        named = set(re.findall(r"`greta\.([A-Za-z_]+)", text)) - {"h", "torch", "frameworks"}
        self.assertGreater(len(named), 4)
        for name in named:
            self.assertTrue(hasattr(greta, name), name)
        for name in greta.__all__:
            self.assertTrue(getattr(greta, name).__doc__, name)


if __name__ == "__main__":
    unittest.main()
