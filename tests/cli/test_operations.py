"""Protects: docs/kernels.md equals the catalog, and every operation has a command."""
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
            self.assertRegex(told.stdout, r"--dtype TYPE +type of the inputs: .*\bbf16\b", name)
            self.assertRegex(told.stdout, r"--out-dtype TYPE +type of the output: .* for bf16", name)
            naive = self.run_tune(name, "--naive", "--device", "nowhere:7")
            self.assertEqual("--naive" in told.stdout, "--naive:" not in naive.stderr, name)

    def test_attributes_tell_their_values(self):
        told = self.run_tune("gemm", "--help").stdout
        self.assertRegex(told, r"--layout nn\|nt\|tn\|tt .*: nn, nt, tn or tt ")
        self.assertRegex(told, "--epilogue LIST .*bias, residual")

    def test_strides_that_cant_be_are_one_line(self):
        for options, message in [
                (("--x_stride", "63"), "--x-stride 63: must be at least cols, 64"),
                (("--y_stride", "2147483648"),
                 "--y-stride 2147483648: must be a whole number from cols to 2147483647"),
                (("--place", "in", "--y_stride", "72"),
                 "--y-stride 72: must be x_stride, 64, where place is in")]:
            told = self.run_tune("softmax", "--rows", "4", "--cols", "64", *options)
            self.assertEqual(told.returncode, 2, told.stderr)
            self.assertEqual(told.stderr.strip(), "greta-tune: " + message)

    def test_problems_that_are_measured_on_gpus_exist(self):
        lines = (SOURCE / "scripts" / "measured_problems.txt").read_text().splitlines()
        self.assertTrue(lines)
        for line in lines:
            result = self.run_tune(*line.split()[1:], "--device", "nowhere:7")
            self.assertIn("nowhere:7", result.stderr, line)


if __name__ == "__main__":
    unittest.main()
