"""Protects: a comparison of a kernel with a version that is known to be correct names exactly the wrong edit, also in
an included file and among harmless ones, and never uses a version that is wrong as well."""
import json
import shutil
import unittest

from cli_case import SOURCE, Case

TEMPLATES = SOURCE / "kernels/templates"
ADD = ["add", "--rows", "9", "--cols", "30", "--config"]
HIP = [*ADD, "flat THREADS=64 VEC=2 ITEMS=4", "--device", "hip-host:0"]
GLSL = [*ADD, "flat THREADS=64 VEC=2 ITEMS=4", "--device", "vulkan:0"]
SUM = ("add/flat.hip", "x[0] + x[1]", "x[0] - x[1]")


class DiagnoseAgainst(Case):
    def templates(self, *edits):
        """Returns a folder for --templates with edits: file, text, and what replaces it."""
        folder = self.folder / "templates"
        for file, text, by in edits:
            path = folder / file
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(TEMPLATES / file, path)
            source = path.read_text()
            self.assertEqual(source.count(text), 1, f"the template has changed: change the edit, too: {text}")
            path.write_text(source.replace(text, by))
        return folder

    def keep(self, *words):
        kept = self.folder / "kept"
        shutil.rmtree(kept, ignore_errors=True)
        result = self.run_tune("verify", *words, "--first", "--seed", "3", "--keep-failed", kept)
        self.assertEqual(result.returncode, 1, result.stderr)
        (case,) = kept.iterdir()
        return case

    def diagnosis(self, case, *options):
        result = self.run_tune("diagnose", "--json", "--changes", "0", *options, case)
        self.assertEqual(result.returncode, 0, result.stderr)
        (diagnosis,) = json.loads(result.stdout)["diagnoses"]
        return diagnosis

    def assertGuilty(self, diagnosis, *places):
        """Expects exactly these places: file, and parts of the text as it is and of the correct one."""
        comparison = diagnosis["comparison"]
        self.assertEqual(len(comparison["guilty"]), len(places), comparison)
        self.assertEqual(comparison["why"], "")
        self.assertTrue(comparison["smallest"])
        first = diagnosis["causes"][0]
        self.assertIn(f"with the text of {comparison['with']}, all results are correct, also with other operands",
                      first["evidence"])
        for guilty, (file, text, known_good) in zip(comparison["guilty"], places):
            self.assertEqual(guilty["file"], file)
            self.assertIn(text, guilty["text"])
            self.assertIn(known_good, guilty["known_good"])
            self.assertIn(f"{file}:{guilty['line']}: ", first["words"])

    def test_a_bug_in_a_template_is_named_with_its_line_on_any_machine(self):
        templates = self.templates(SUM)
        case = self.keep(*HIP, "--templates", templates)
        lines = (templates / SUM[0]).read_text().splitlines()
        (number,) = [i for i, line in enumerate(lines, 1) if SUM[2] in line]
        shutil.rmtree(templates)  # the case has all that is needed
        diagnosis = self.diagnosis(case)
        self.assertGuilty(diagnosis, SUM[:1] + (SUM[2], SUM[1]))
        self.assertEqual(diagnosis["comparison"]["guilty"][0]["line"], number)
        self.assertEqual(diagnosis["comparison"]["with"], "the built-in templates")
        self.assertEqual(diagnosis["comparison"]["trials"], 2)
        self.assertEqual([cause["kind"] for cause in diagnosis["causes"][:2]], ["edit", "wrong sign"])
        said = self.run_tune("diagnose", "--changes", "0", case).stdout
        self.assertIn(f"add/flat.hip:{number}: ", said)
        self.assertIn("compared with the built-in templates: 1 difference, 2 versions tried\n", said)

    def test_a_comparison_can_be_left_out(self):
        diagnosis = self.diagnosis(self.keep(*HIP, "--templates", self.templates(SUM)), "--against", "none")
        self.assertIsNone(diagnosis["comparison"])
        self.assertNotIn("flat.hip", diagnosis["causes"][0]["words"])

    def test_a_bug_in_an_included_file_is_named_among_harmless_edits(self):
        templates = self.templates(
            ("add/flat.hip", "x[0] + x[1]", "x[1] + x[0]"),
            ("common/map.hip", "store_floats(out + at * VEC, y);", "store_floats(out + (at ^ 1) * VEC, y);"))
        diagnosis = self.diagnosis(self.keep(*HIP, "--templates", templates))
        self.assertGuilty(diagnosis, ("common/map.hip", "(at ^ 1) * VEC", "out + at * VEC"))
        self.assertEqual(diagnosis["comparison"]["differences"], 2)

    def test_a_bug_in_glsl_is_named_and_harmless_words_of_its_line_are_not(self):
        file = "add/flat.comp"
        templates = self.templates((file, "return x[0] + x[1];", "const float other = x[1];\n  return x[0] - other;"))
        case = self.keep(*GLSL, "--templates", templates)
        self.assertGuilty(self.diagnosis(case), (file, "return x[0] - other;", "return x[0] + other;"))

    def test_two_bugs_are_named_together(self):
        templates = self.templates(
            SUM, ("common/map.hip", "store_floats(out + at * VEC, y);", "store_floats(out + (at ^ 1) * VEC, y);"))
        self.assertGuilty(self.diagnosis(self.keep(*HIP, "--templates", templates)),
                          ("add/flat.hip", "x[0] - x[1]", "x[0] + x[1]"),
                          ("common/map.hip", "(at ^ 1) * VEC", "out + at * VEC"))

    def test_templates_of_a_folder_are_known_good_if_results_with_them_are_correct(self):
        case = self.keep(*HIP, "--templates", self.templates(SUM))
        self.assertGuilty(self.diagnosis(case, "--against", TEMPLATES), SUM[:1] + (SUM[2], SUM[1]))
        self.assertGuilty(self.diagnosis(case, "--against", TEMPLATES / SUM[0]), SUM[:1] + (SUM[2], SUM[1]))
        for text, why in (("x[1] - x[0]", "it is not used: its results are wrong as well"),
                          ("x[1] + none", "it is not used: it does not compile"),
                          ("*static_cast<const float*>(nullptr)", "it is not used: it ends or blocks its process")):
            other = self.folder / "flat.hip"
            other.write_text((TEMPLATES / SUM[0]).read_text().replace(SUM[1], text))
            diagnosis = self.diagnosis(case, "--against", other)
            self.assertEqual(diagnosis["comparison"]["guilty"], [])
            self.assertEqual(diagnosis["comparison"]["why"], why)
            self.assertEqual(diagnosis["causes"][0]["kind"], "wrong sign")

    def test_an_element_that_is_not_written_is_wrong_though_what_was_there_is_expected(self):
        file, known_good = "permute/fused.hip", "places[token * TOP_K + me] = place[me];"
        templates = self.templates((file, known_good, "if (place[me] >= 0) " + known_good))
        case = self.keep("permute", "--variant", "fused", "--problems", "20", "--device", "hip-host:0",
                         "--templates", templates)
        self.assertEqual(self.run_tune("run-case", case, "--device", "hip-host:0").returncode, 1)
        diagnosis = self.diagnosis(case)
        (guilty,) = diagnosis["comparison"]["guilty"]
        self.assertEqual(guilty["file"], file)
        self.assertIn("if (place[me] >= 0)", guilty["text"])
        self.assertEqual([cause["kind"] for cause in diagnosis["causes"][:2]], ["edit", "not written"])

    def test_without_a_device_the_differences_are_told(self):
        case = self.keep(*HIP, "--templates", self.templates(SUM))
        index = case / "case.json"
        index.write_text(index.read_text().replace("host-sm_80", "host-other"))
        diagnosis = self.diagnosis(case)
        self.assertRegex(diagnosis["comparison"]["why"],
                         r"^it was not run: no CPU device here runs kernels of host-other: .*; it differs at add/flat.hip:\d+$")

    def own(self, name, config, device, text, by):
        """Verifies a copy of a correct kernel, and again with an edit. Returns its case and its source."""
        folder = self.folder / "own"
        (description,) = SOURCE.glob(f"tests/data/*/{name}.jsonc")
        shutil.copytree(description.parent, folder)
        (source,) = [path for path in folder.glob(f"{name}.*") if path.suffix != ".jsonc"]
        words = [folder / f"{name}.jsonc", "--config", f"described {config}", "--device", device]
        result = self.run_tune("verify", *words, "--seed", "3")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(source.read_text().count(text), 1)
        source.write_text(source.read_text().replace(text, by))
        return self.keep(*words), source

    def test_a_kernel_of_ones_own_is_compared_with_its_last_verified_version(self):
        product = "    for (int i = 0; i < TILE; ++i) sum += a_tile[y][i] * b_tile[i][x];\n"
        case, source = self.own("batched", "UNUSED=0", "hip-host:0", product + "    __syncthreads();\n",
                                "    // The product\n" + product)
        shutil.rmtree(source.parent)
        diagnosis = self.diagnosis(case)
        self.assertEqual(diagnosis["comparison"]["with"], "the version that passed verification last")
        self.assertGuilty(diagnosis, ("batched.hip", "", "__syncthreads();"))
        self.assertEqual(diagnosis["comparison"]["guilty"][0]["text"], "")
        self.assertIn("`__syncthreads();` of the known-good version is missing", diagnosis["causes"][0]["words"])

    def test_sources_that_failed_are_not_the_verified_version(self):
        _, source = self.own("norm", "THREADS=32", "vulkan:0", "added(sum) / cols + 1e-5",
                             "added(sum) / (THREADS == 32 ? rows : cols) + 1e-5")
        words = [source.parent / "norm.jsonc", "--device", "vulkan:0", "--config"]
        passed = self.run_tune("verify", *words, "described THREADS=64", "--seed", "3")
        self.assertEqual(passed.returncode, 0, passed.stderr)
        diagnosis = self.diagnosis(self.keep(*words, "described THREADS=32"))
        self.assertGuilty(diagnosis, ("norm.comp", "? rows : cols", "/ cols"))

    def test_an_edit_that_makes_results_differ_between_runs_is_named(self):
        case, source = self.own("arrival", "RACE=0 SIZE=1e-3f", "hip-host:0", "#if RACE", "// Races:\n#if 1")
        diagnosis = self.diagnosis(case)
        self.assertGuilty(diagnosis, ("arrival.hip", "#if 1", "#if RACE"))
        self.assertIn("race", [cause["kind"] for cause in diagnosis["causes"]])

    def test_a_kernel_of_ones_own_in_glsl_is_compared_with_a_file(self):
        case, _ = self.own("norm", "THREADS=32", "vulkan:0", "added(sum) / cols + 1e-5", "added(sum) / rows + 1e-5")
        file = self.folder / "norm-of-yesterday.comp"  # a file of any name that has most lines
        shutil.copy(SOURCE / "tests/data/planted/norm.comp", file)
        diagnosis = self.diagnosis(case, "--against", file)
        self.assertEqual(diagnosis["comparison"]["with"], str(file))
        self.assertGuilty(diagnosis, ("norm.comp", "added(sum) / rows", "added(sum) / cols"))
        self.refused(self.run_tune("diagnose", "--against", SOURCE / "tests/data/planted/tiles.comp", case), 2,
                     "tiles.comp: is not a version of a file of the case's kernel: norm.comp")

    def test_errors_are_one_line(self):
        case = self.keep(*HIP, "--templates", self.templates(SUM))
        equal = case / "templates" / SUM[0]
        for path, word in ((self.folder / "missing.hip", "No such file"), (equal, "the case's sources are equal to it"),
                           (case / "templates", "the case's sources are equal to it"),
                           (TEMPLATES / "gemm/naive.hip", "is not a version of a file of the case's kernel: add/flat.hip"),
                           (TEMPLATES / "gemm", "has no file of the case's kernel: add/flat.hip")):
            with self.subTest(path=path):
                self.refused(self.run_tune("diagnose", "--against", path, case), 2, f"--against {path}: ", word)
        shutil.rmtree(case / "templates")  # as a case of an older version
        self.refused(self.run_tune("diagnose", "--against", TEMPLATES, case), 2,
                     "the case does not contain the files of its kernel")


if __name__ == "__main__":
    unittest.main()
