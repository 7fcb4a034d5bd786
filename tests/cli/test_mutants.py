"""Protects: verify detects bugs in kernels. Each entry of tests/data/mutants.json is a planted bug
of a kind that scripts/mutate.py knows: after replacing `old` by `new` in a template, a few random
problems must detect it: 30, of 200 that verify draws by default. An entry has a seed where the problems of seed 1 lack the
input that finds it."""
import concurrent.futures
import json
import unittest

from cli_case import SOURCE, WHOLE, Case

MUTANTS = json.loads((SOURCE / "tests/data/mutants.json").read_text())
AT_ONCE = 2


class Mutants(Case):
    def verify(self, number, mutant):
        """Returns the result of verify for a mutant, which must be a failure of the kernel."""
        text = (SOURCE / "kernels/templates" / mutant["file"]).read_text()
        templates = self.folder / str(number)
        file = templates / mutant["file"]
        file.parent.mkdir(parents=True)
        file.write_text(text.replace(mutant["old"], mutant["new"]))
        variant = ["--variant", mutant["variant"]] if mutant["variant"] else []
        result = self.run_tune("verify", mutant["op"], "--device", mutant["device"], "--problems", 30, "--seed",
                               mutant.get("seed", 1),
                               *variant, "--first", "--deadline", 20, "--json", "--templates", templates,
                               env=dict(self.env, GALLIVM_PERF="nopt"), timeout=120)
        self.assertEqual(result.returncode, 1, f"not found: {mutant}\n{result.stderr}")
        return json.loads(result.stdout)["failures"][0]["status"]

    def test_each_is_found(self):
        """The suite without its slow part plants every third, among them those that only one kind of input or check
        finds: NaN in gemm, infinities in A of quantised products, 1 around numbers of rows and more workgroups than
        tiles on hip-host, and elements that are not written; and on emulated cooperative matrices."""
        self.assertEqual(len(MUTANTS), 403)
        planted = MUTANTS if WHOLE else MUTANTS[::3]
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            ends = list(pool.map(self.verify, range(len(planted)), planted))
        self.assertLessEqual(set(ends), {"correctness", "crash", "launch", "timeout"})  # and not "compile"

    def test_each_can_be_planted(self):
        for mutant in MUTANTS:
            with self.subTest(mutant=mutant):
                text = (SOURCE / "kernels/templates" / mutant["file"]).read_text()
                self.assertEqual(text.count(mutant["old"]), 1, "the template has changed: change the mutant, too")

    def test_they_are_of_every_kind_and_operation(self):
        operations = {folder.name for folder in (SOURCE / "kernels/templates").iterdir()} - {"common"}
        self.assertEqual({mutant["op"] for mutant in MUTANTS}, operations)
        self.assertEqual({mutant["kind"] for mutant in MUTANTS},
                         {"comparison", "boundary", "index", "barrier", "order", "type", "constant", "dropped term",
                          "swapped operand"})


if __name__ == "__main__":
    unittest.main()
