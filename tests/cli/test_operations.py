"""Protects: docs/kernels.md is the catalog as it is, and every operation has a command of its own."""
import unittest

from cli_case import SOURCE, Case


class Operations(Case):
    def names(self):
        lines = self.run_tune("operations").stdout.splitlines()
        return [line.split()[0] for line in lines if not line.startswith(" " * 8)]

    def test_the_document_is_the_catalog(self):
        printed = self.run_tune("operations", "--markdown")
        self.assertEqual(printed.returncode, 0, printed.stderr)
        document = (SOURCE / "docs" / "kernels.md").read_text()
        self.assertEqual(document, printed.stdout,
                         "run greta-tune operations --markdown > docs/kernels.md")

    def test_every_operation_tells_its_options(self):
        names = self.names()
        self.assertIn("gemm", names)
        for name in names:
            told = self.run_tune(name, "--help")
            self.assertEqual(told.returncode, 0, name)
            self.assertIn("--dtype", told.stdout, name)


if __name__ == "__main__":
    unittest.main()
