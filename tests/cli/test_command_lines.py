"""Protects: for any arguments greta-db ends with a documented exit code, prints at most one line on
standard error, and leaves an intact database. GRETA_CASES sets the number of command lines."""
import os
import random
import shutil
import unittest

from cli_case import Case, DB

COMMANDS = ["info", "list", "show", "verify", "prune", "merge", "export", "import", "regret",
            "upgrade"]
OPTIONS = ["--op", "--dtype", "--out-dtype", "--dims", "--variant", "--device", "--driver", "--cold",
           "--warm", "--stale", "--fresh", "--json", "--csv", "--trials", "--failed", "--superseded",
           "--results", "--dry-run", "--ship", "--format", "--out", "--force", "--preset", "--seed",
           "--help", "--version", "--db", "--nonsense", "-h", "--", "-"]
VALUES = ["gemm", "softmax", "f16", "bf16", "m=64", "m=64 n=48", "m=", "=", "tiled", "vulkan:0",
          "llvm", "csv", "t4", "tunableop", "tunableop-untuned", "out", "db", "none", "", " ", "0",
          "-1", "99999999999999999999", "nan", "%s%n", "a\tb", "\x01", "é界", "'; DROP TABLE winners",
          "x" * 5000, "/dev/null", "/", "."]


def mutated(word, generator):
    if not word or generator.random() < 0.8:
        return word
    at = generator.randrange(len(word))
    return generator.choice([word[:at], word[:at] + chr(generator.randrange(1, 127)) + word[at:],
                             word[:at] + word[at + 1:], word.upper(), word + "=" + word])


class CommandLines(Case):
    known_devices = "auto,vulkan:0"

    def setUp(self):
        super().setUp()
        result = self.run_tune("gemm", "--m", 64, "--n", 48, "--k", 40, "--budget", 2, "--db",
                               self.db, "--device", "vulkan:0", "--seed", 1)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.good = self.folder / "good.db"
        shutil.copy(self.db, self.good)

    def words(self, generator):
        words = [generator.choice(COMMANDS)] if generator.random() < 0.95 else []
        for _ in range(generator.randrange(6)):
            words.append(generator.choice(OPTIONS + VALUES))
        words = [mutated(word, generator) for word in words]
        # File names are relative to the test's folder.
        return [{"db": str(self.db), "out": str(self.folder / "out"),
                 "good": str(self.good)}.get(word, word) for word in words]

    def test_words_at_random(self):
        generator = random.Random(7)
        for number in range(int(os.environ.get("GRETA_CASES", "50"))):
            words = self.words(generator)
            if words and "--db" not in words:
                words += ["--db", str(self.db)]
            with self.subTest(number=number, words=words):
                result = self.run_words(DB, *words)
                self.assertIn(result.returncode, (0, 1, 2, 3), result.stderr)
                lines = [line for line in result.stderr.split("\n") if line]
                self.assertLessEqual(len(lines), 1, result.stderr)
                self.assertEqual(bool(lines), result.returncode != 0)
            if number % 50 == 49:
                self.assertEqual(self.run_db("verify").returncode, 0)
                shutil.copy(self.good, self.db)


if __name__ == "__main__":
    unittest.main()
