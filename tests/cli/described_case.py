"""What the tests of kernels that somebody brings share."""
import json
import shutil

from cli_case import SOURCE, Case

DATA = SOURCE / "tests" / "data"


class DescribedCase(Case):
    """A folder with the kernels of tests/data/kernels."""

    def setUp(self):
        super().setUp()
        shutil.copytree(DATA / "kernels", self.folder, dirs_exist_ok=True)
        self.file = self.folder / "vector_add.jsonc"

    def tuned(self, *arguments, code=0):
        self.know_ceilings("hip-host:0")
        result = self.run_tune("kernel", self.file, "--n", "5000", "--device", "hip-host:0",
                               "--db", self.db, "--no-lock", "--flush", "1", "--json", *arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        return json.loads(result.stdout)

    def replace(self, name, before, after):
        path = self.folder / name
        text = path.read_text()
        self.assertIn(before, text)
        path.write_text(text.replace(before, after))

    def complaint(self, *arguments, code=2):
        result = self.run_tune("kernel", *arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        return result.stderr

    def verify_stencil(self, *arguments):
        return self.run_tune("verify", self.folder / "stencil.jsonc", "--height", "50", "--width",
                             "70", *arguments)
