"""Protects: a candidate with wrong results is kept as a case, and the diagnosis names the planted bug
as the first cause, also where the kernels, the device and the description are not known."""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import struct
import zlib

import unittest

from cli_case import SOURCE, WHOLE, Case

# A tolerance that rounding of some elements exceeds.
TIGHT = '"absolute": 6e-7, "relative": 6e-7'

FAULTY = SOURCE / "tests/data/faulty"

# The faults of product.hip: the kind of the first cause, and a part of its words.
FAULTS = {
    "transposed_operand": ("transposed operand", "a is read"),
    "shifted_row": ("shifted operand", "a is read 1 row too far"),
    "stale_tile": ("stale or wrong tile", "-8 columns further on"),
    "missing_tail": ("missing tail", "k is taken as 48, not 50"),
    "missing_slice": ("missing slice", "0 to 7 is skipped"),
    "doubled_slice": ("doubled slice", "8 to 15 counts twice"),
    "wrong_stride": ("wrong stride", "a are read with a stride of 52 elements, not 50"),
    "half_sums": ("half-precision accumulation", "f16"),
    "uninitialised_read": ("uninitialised read", "an output before it writes it"),
    "unwritten": ("not written", "never written"),
    "off_by_one": ("off by one", "k is taken as 49, not 50"),
    "wrong_sign": ("wrong sign", "has the wrong sign"),
    "write_outside": ("write out of bounds", "outside of an operand"),
    "element_size": ("wrong stride", "b is addressed as if its elements had 2 bytes, not 4"),
    "tile_step": ("wrong stride", "a: tiles of 8 columns are 16 elements apart, not 8"),
    "neighbour": ("wrong index", "b: the first element of each group of 2 is read for all of them"),
    "missing_barrier": ("race", "a barrier, or waiting for a copy, is missing"),
}

ATTENTION = ["--batch", "2", "--heads", "4", "--kv_heads", "2", "--q", "5", "--kv", "40", "--dim", "16",
             "--variant", "vector"]
SPLIT_ROWS = ["--rows", "9", "--cols", "34", "--config", "split THREADS=64 VEC=2 ITEMS=2 SPLIT=4"]
# Bugs in GRETA's templates: operation, options, file, text, mutant, kind and words of the first cause.
PLANTED = [
    ("attention", [*ATTENTION, "--mask", "causal"], "attention/operands.hip", "count + query + 1;",
     "count + query;", "off-by-one mask", "1 key too few"),
    ("rmsnorm", ["--rows", "7", "--cols", "93", "--variant", "streamed"], "common/rms.hip",
     "total / count", "total / (count + 1)", "wrong row statistic", "divided by 94, not by 93"),
    ("gemm", ["--m", "33", "--n", "20", "--k", "18", "--epilogue", "bias", "--variant", "naive"],
     "gemm/naive.hip", "i < k; ++i", "i + 1 < k; ++i", "off by one", "k is taken as 17, not 18"),
    ("gemm", ["--m", "33", "--n", "20", "--k", "18", "--alpha", "3", "--epilogue", "bias", "--variant", "naive"],
     "gemm/operands.hip", "return args.alpha * sum;", "return sum;", "wrong attribute", "alpha=1 in place of"),
    ("add", ["--rows", "9", "--cols", "30"], "add/flat.hip", "x[0] + x[1]", "x[0] - x[1]", "wrong sign", "B has"),
    ("add", ["--rows", "9", "--cols", "30"], "add/flat.hip", "x[0] + x[1]", "x[0] + x[1] + x[1]", "doubled operand",
     "B counts twice"),
    ("attention", ATTENTION, "attention/vector.hip", "tile.head / (heads / kv_heads)", "tile.head % kv_heads",
     "wrong head or batch", "uses the KV head h modulo their number"),
    ("attention", [*ATTENTION[:-2], "--config", "vector BQ=16 BK=16 TQ=1 LANES=4 VEC=8 TOGETHER=32"], "attention/vector.hip",
     "value[i][e] *= kept;", "value[i][e] *= 1.0f;", "missing rescaling", "sums of values over tiles of 16 keys"),
    # What only other runs tell: after another run, with set registers, and on changed inputs.
    ("argmax", [*SPLIT_ROWS], "common/arrival.hip", "return *before == blocks - 1;", "return *before == 0;",
     "arrival counter", "before all have arrived"),
    ("argmax", [*SPLIT_ROWS], "common/arrival.hip", "return *before == blocks - 1;", "return *before == blocks;",
     "arrival counter", "no workgroup takes itself for the last one"),
    ("argmax", [*SPLIT_ROWS], "common/arrival.hip", "if (*before == blocks - 1) *counter = 0;", ";", "arrival counter",
     "to a wrong number, or don't reset"),
    ("embedding", ["--tokens", "39", "--vocabulary", "34", "--dim", "128", "--variant", "gather"], "embedding/gather.hip",
     "place[i] = advance(start, i * THREADS + thread_index(), width);", ";", "uninitialised read", "a register"),
    ("add", ["--rows", "8", "--cols", "32"], "common/map.hip", "store_floats(out + at * VEC, y);",
     "store_floats(out + (at ^ 1) * VEC, y);", "wrong index", "stored at the places of others"),
]


# Bugs in what all kernels share: conversions of element types, and sums across lanes.
ADD = ["--rows", "12", "--cols", "64", "--config", "flat THREADS=64 VEC=2 ITEMS=4", "--dtype"]
RMSNORM = ["--rows", "7", "--cols", "512", "--config", "streamed THREADS=1024 ROWS=8 VEC=1 ITEMS=8"]
GEMV = ["--m", "4", "--n", "40", "--k", "512", "--layout", "nt", "--dtype", "f16", "--config",
        "gemv THREADS=512 COLS=32 VB=8 VA=8 TN=1 UNROLL=16 SPLIT=16"]
TO_FLOAT = "return float_from_bits(sign | (finite ? rebiased : magnitude | 0x7f800000U));"
TO_F16 = "return {u16(sign | half)};"
STEP = "value = merge(value, each_word(value, Across<lanes / 2 * step>{}));"
WAVES = "return reduce_lanes<waves>(shared[first + lane_index() % waves], merge);"
# Operation, options, file of templates/common, text, mutant, and words of the first cause.
SHARED = [
    ("add", [*ADD, "f16"], "types.hip", TO_FLOAT, "return float_from_bits(u32(x.bits) << 16);",
     "A, B are taken as bf16"),
    ("add", [*ADD, "f16"], "types.hip", "sign = u32(x.bits & 0x8000) << 16;", "sign = u32(x.bits & 0x8000) << 17;",
     "A, B lose their sign"),
    ("add", [*ADD, "f16"], "types.hip", "bits_of(float_from_bits(magnitude) * 0x1p112f)",
     "magnitude < 0x400U << 13 ? 0 : bits_of(float_from_bits(magnitude) * 0x1p112f)", "subnormal in f16, count as 0"),
    ("add", [*ADD, "f16"], "types.hip", "magnitude = u32(x.bits & 0x7fff) << 13",
     "magnitude = u32(x.bits & 0x7fff) << 12", "A, B are shifted by 12 bits to those of f32, not by 13"),
    ("add", [*ADD, "bf16"], "types.hip", "u32(x.bits) << 16); }", "u32(x.bits) << 15); }", "A, B are shifted by"),
    ("add", [*ADD, "bf16"], "types.hip", "u32(x.bits) << 16); }", "16U << (x.bits & 31)); }",
     "A, B are the number of bits by which a constant is shifted"),
    ("add", [*ADD, "bf16"], "types.hip", "u16(pack.raw.word[i / 2] >> i % 2 * 16)",
     "u16(i % 2 ? 0 : pack.raw.word[i / 2])", "the second of each two elements of A, B count as 0"),
    ("add", [*ADD, "f16"], "types.hip", TO_F16, "return {u16((sign | half) >> 8 | (sign | half) << 8)};",
     "C have their two bytes exchanged"),
    ("add", [*ADD, "f16"], "types.hip", TO_F16, "return {u16((sign | half) & 0xfff0)};", "C lose the last 4 bits"),
    ("add", [*ADD, "f16"], "types.hip", TO_F16, "return {u16(half)};", "C lose their sign"),
    ("add", [*ADD, "f16"], "types.hip", "(112U << 23)", "(111U << 23)", "C are 2^1 times what they are"),
    ("add", [*ADD, "f16"], "types.hip", "u32 half = 0x7c00;", "u32 half = 0x7bff;",
     "C are limited to the largest number in place of infinity"),
    ("add", [*ADD, "f16"], "types.hip", "0xfffU + (magnitude >> 13 & 1)", "0U", "C are rounded toward zero"),
    ("add", [*ADD, "bf16"], "types.hip", "bits + 0x7fffU + (bits >> 16 & 1)", "bits", "C are rounded toward zero"),
    ("gemm", GEMV, "reduce.hip", STEP, f"if (lanes != 4) {STEP}", "count never where their index has the bit 16"),
    ("gemm", GEMV, "reduce.hip", "each_word(value, Across<lanes / 2 * step>{})", "value",
     "only every first of 4 groups of 8 counts, 16 times"),
    ("rmsnorm", RMSNORM, "reduce.hip", WAVES,
     WAVES.replace("shared[first + lane_index() % waves]",
                   "lane_index() % waves < waves / 2 ? shared[first + lane_index() % waves] : T(0)"),
     "lacks those whose index has the bit 64"),
    ("rmsnorm", RMSNORM, "reduce.hip", STEP, f"if (lanes != 4) {STEP}", "each of 2 lanes, with 2 neighbouring columns"),
    ("softmax", ["--rows", "7", "--cols", "512", "--config", "staged THREADS=32 VEC=2 STAY=1 AHEAD=1 CLUSTER=1 KEEP=0"],
     "reduce.hip", STEP, f"if (lanes != 4) {STEP}", "over those of 2 groups of 4 that it belongs to"),
]


class Diagnose(Case):
    def setUp(self):
        super().setUp()
        shutil.copytree(FAULTY, self.folder / "faulty")
        self.file = self.folder / "faulty/product.jsonc"

    def keep(self, fault, *options, folder="kept", size=(60, 44, 50)):
        """Verifies a fault of product.hip, and returns its case and verify's result."""
        kept = self.folder / f"{folder}-{fault}"
        m, n, k = map(str, size)
        result = self.run_tune("verify", self.file, "--m", m, "--n", n, "--k", k, "--config",
                               f"described FAULT={fault}", "--device", "hip-host:0", "--seed", "1",
                               "--keep-failed", kept, *options)
        self.assertEqual(result.returncode, 1, result.stderr)
        (case,) = kept.iterdir()
        return case, result

    def named(self, result):
        """Returns what verify says of the case that it kept, in the form of diagnosis()."""
        (line,) = [line for line in result.stderr.splitlines() if line.startswith("kept ")]
        said = line.split(": ", 1)[1]
        kind, words = said.removeprefix("possibly ").split(": ", 1)
        return {"causes": [{"kind": kind, "words": words}], "sure": not said.startswith("possibly ")}

    def diagnosis(self, case):
        result = self.run_tune("diagnose", "--json", "--changes", "0", "--against", "none", case)
        self.assertEqual(result.returncode, 0, result.stderr)
        (diagnosis,) = json.loads(result.stdout)["diagnoses"]
        return diagnosis

    def assertNames(self, diagnosis, kind, words):
        first = diagnosis["causes"][0]
        self.assertEqual(first["kind"], kind, first)
        self.assertIn(words, first["words"])
        self.assertTrue(diagnosis["sure"], first)

    def test_each_fault_of_a_kernel_is_named(self):
        def check(fault):
            return self.named(self.keep(fault)[1])
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for fault, diagnosis in zip(FAULTS, pool.map(check, FAULTS)):
                with self.subTest(fault=fault):
                    self.assertNames(diagnosis, *FAULTS[fault])

    def planted(self, number, plant):
        op, options, file, text, mutant, *_ = plant
        drawn = [] if "--config" in options else ["--sample", "1"]
        templates = self.planted_templates(f"templates-{number}", file, text, mutant)
        kept = self.folder / f"planted-{number}"
        result = self.run_tune("verify", op, *options, *drawn, "--first", "--seed", "3", "--device", "hip-host:0",
                               "--templates", templates, "--keep-failed", kept)
        self.assertEqual(result.returncode, 1, result.stderr)
        (case,) = kept.iterdir()
        return case, result

    def test_the_dimension_is_the_operands_where_others_have_its_extent(self):
        _, result = self.keep("missing_slice", size=(44, 44, 44))
        self.assertIn("missing slice: k (columns of a) 0 to 7 is skipped", result.stderr)

    def test_bugs_in_templates_are_named(self):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for plant, (_, result) in zip(PLANTED, pool.map(self.planted, range(len(PLANTED)), PLANTED)):
                with self.subTest(plant=plant[4]):
                    self.assertNames(self.named(result), plant[5], plant[6])

    def test_bugs_in_conversions_and_sums_across_lanes_are_named(self):
        plants = [(op, options, f"common/{file}", text, mutant,
                   "wrong conversion" if file == "types.hip" else "wrong sum across lanes", words)
                  for op, options, file, text, mutant, words in (SHARED if WHOLE else SHARED[::3])]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for plant, (_, result) in zip(plants, pool.map(self.planted, range(len(plants)), plants)):
                with self.subTest(plant=plant[4]):
                    self.assertNames(self.named(result), plant[5], plant[6])

    def test_what_no_hypothesis_explains_has_measured_facts(self):
        case, _ = self.planted(0, ("add", [*ADD, "f16"], "add/flat.hip", "x[0] + x[1]",
                                   "x[0] + x[1] * (x[0] > 0.1f ? 0.5f : 1.25f)"))
        diagnosis = self.diagnosis(case)
        self.assertRegex("\n".join(diagnosis["facts"]), "-0.5 times the element of B at the same place too large")

    def test_rounding_beyond_the_tolerance_is_no_fault(self):
        # Few wrong elements must not prove a hypothesis that was fitted to them.
        self.file.write_text(self.file.read_text().replace('"absolute": 1e-4, "relative": 1e-5', TIGHT))
        result = self.run_tune("verify", self.file, "--m", "60", "--n", "44", "--k", "256", "--config",
                               "described FAULT=none", "--device", "hip-host:0", "--seed", "1", "--keep-failed",
                               self.folder / "kept")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertNames(self.named(result), "rounding", "of sums of up to 256 terms, and only the largest exceed")

    def test_a_change_of_the_source_is_found(self):
        result = self.run_tune("verify", self.folder / "faulty/smooth.jsonc", "--n", "100", "--config",
                               "described STEP=1", "--device", "hip-host:0", "--seed", "1", "--keep-failed",
                               self.folder / "kept")
        self.assertEqual(result.returncode, 1, result.stderr)
        (case,) = (self.folder / "kept").iterdir()
        result = self.run_tune("diagnose", "--json", "--changes", "600", case)
        self.assertEqual(result.returncode, 0, result.stderr)
        (diagnosis,) = json.loads(result.stdout)["diagnoses"]
        self.assertNames(diagnosis, "wrong operator", "`>=` in place of `>`")  # as good as 0 in place of 1
        self.assertIn("(i >= 1 ? x[i - 1] : 0.0f);`, all results are correct, also with other operands",
                      diagnosis["causes"][0]["evidence"])
        self.assertRegex(diagnosis["search"], r"^\d+ of \d+ single changes of the source tried, \d+ of which compile$")
        text = (case / "kernel-0.hip").read_text().splitlines()
        line = int(re.match(r"line (\d+) of kernel-0.hip: ", diagnosis["causes"][0]["words"])[1])
        self.assertIn("(i > 1 ? x[i - 1] : 0.0f);", text[line - 1])

    def test_a_race_that_was_reported_is_named_with_the_place_of_its_barrier(self):
        # Other changes may hide a race, too.
        case, _ = self.keep("missing_barrier")
        result = self.run_tune("diagnose", "--json", "--changes", "600", case)
        self.assertEqual(result.returncode, 0, result.stderr)
        (diagnosis,) = json.loads(result.stdout)["diagnoses"]
        self.assertNames(diagnosis, "race", "a barrier, or waiting for a copy, is missing; line ")
        self.assertRegex(diagnosis["causes"][0]["words"],
                         r"line \d+ of kernel-0.hip: `__syncthreads\(\);` is missing$")

    def test_a_variable_that_nothing_sets_is_named_without_a_search(self):
        templates = self.planted_templates("unset", "common/arrival.glsl",
                                           "arrived_before = atomicAdd(Counter(counter).v, 1);", ";")
        kept = self.folder / "unset-kept"
        result = self.run_tune("verify", "argmax", "--rows", "9", "--cols", "34", "--variant", "split",
                               "--sample", "1", "--first", "--seed", "3", "--device", "vulkan:0", "--templates", templates,
                               "--keep-failed", kept)
        self.assertEqual(result.returncode, 1, result.stderr)
        (case,) = kept.iterdir()
        self.assertNames(self.diagnosis(case), "missing statement", "nothing sets `arrived_before`, which line ")

    def test_rows_that_impulses_show_are_named_with_the_line(self):
        # No other hypothesis states which rows are read in place of which ones.
        for fault, kind, words in (
                ("exchanged_rows", "wrong index", "k (rows of b) all: 4, 0, 1, 2, 3, 9 and 44 more are read in place"),
                ("stale_operand", "stale or wrong tile", "k (rows of b) 48 to 49: those 8 before, of an earlier tile")):
            with self.subTest(fault):
                case, _ = self.keep(fault)
                result = self.run_tune("diagnose", "--json", "--changes", "200", case)
                self.assertEqual(result.returncode, 0, result.stderr)
                (diagnosis,) = json.loads(result.stdout)["diagnoses"]
                self.assertNames(diagnosis, kind, words)
                self.assertRegex(diagnosis["causes"][0]["words"], r"; line \d+ of kernel-0.hip: ")

    def test_a_race_is_named_with_its_elements(self):
        result = self.run_tune("verify", self.folder / "faulty/arrival.jsonc", "--n", "4000", "--config",
                               "described RACE=1 SIZE=1e-3f", "--device", "hip-host:0", "--keep-failed",
                               self.folder / "kept")
        self.assertEqual(result.returncode, 1, result.stderr)
        (case,) = (self.folder / "kept").iterdir()
        diagnosis = self.diagnosis(case)
        self.assertNames(diagnosis, "race", "differ between 8 runs")
        self.assertRegex(diagnosis["causes"][0]["evidence"], r"y: \d+ of 4000 elements")

    def test_a_case_is_complete_and_diagnosed_elsewhere(self):
        case, said = self.keep("missing_slice")
        self.assertIn(f"kept {case}: missing slice", said.stderr)
        names = {path.name for path in case.iterdir()}
        self.assertLessEqual({"case.json", "failure.json", "kernel-0.hip", "kernel-0.co", "a.bin", "b.bin",
                              "c.run-0.bin", "c.expected.f64", "c.bound.f64", "diagnosis.txt", "c.errors.png",
                              "description"}, names)
        self.assertIn("#define FAULT_IS_missing_slice 1", (case / "kernel-0.hip").read_text())
        shutil.rmtree(self.file.parent)  # another machine has only the case
        self.assertNames(self.diagnosis(case), "missing slice", "0 to 7")
        failed = self.run_tune("run-case", case)
        self.assertEqual(failed.returncode, 1, failed.stdout)

    def test_the_image_is_a_valid_png(self):
        case, _ = self.keep("unwritten")
        data = (case / "c.errors.png").read_bytes()
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", data[16:24])
        length = struct.unpack(">I", data[33:37])[0]
        pixels = zlib.decompress(data[41:41 + length])
        self.assertEqual(len(pixels), height * (3 * width + 1))
        self.assertEqual((width // 44, height // 60), (8, 8))
        blue = bytes((60, 120, 255))
        last = pixels[(height - 1) * (3 * width + 1) + 1:]
        self.assertEqual(last[-3:], blue)  # the last row of tiles is not written
        self.assertNotIn(blue, pixels[:3 * width])

    def test_tuning_keeps_what_fails(self):
        self.know_ceilings("hip-host:0")
        result = self.run_tune("kernel", self.file, "--m", "60", "--n", "44", "--k", "50", "--device", "hip-host:0",
                               "--db", self.db, "--no-lock", "--flush", "1", "--range", "FAULT=none,missing_tail",
                               "--budget", "3", "--quiet", "--keep-failed", self.folder / "kept")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("missing tail", result.stderr)
        self.assertEqual(len(list((self.folder / "kept").iterdir())), 1)

    def tuned(self, race, *options):
        """Tunes the copy with or without a race, which is within the tolerance."""
        self.know_ceilings("hip-host:0")
        description = self.folder / "faulty/arrival.jsonc"
        default = f'"defaults": {{"RACE": {race}'
        description.write_text(description.read_text().replace('"defaults": {"RACE": false', default))
        return self.run_tune("kernel", self.folder / "faulty/arrival.jsonc", "--n", "4000", "--device", "hip-host:0",
                             "--db", self.db, "--no-lock", "--flush", "1", "--fix", "SIZE=1e-9f", "--budget", "2",
                             "--fix", f"RACE={int(race == 'true')}", "--json", *options)

    def test_a_race_does_not_win(self):
        result = self.tuned("true", "--keep-failed", self.folder / "kept")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, "kept .*: race")
        report = json.loads(result.stdout)
        self.assertIsNone(report["winner"])
        self.assertRegex(" ".join(report["notes"]), r"race: \d+ elements? differ between \d+ runs")
        messages = [message for (message,) in self.query("select message from trials where status = 'correctness'")]
        self.assertTrue(any(message.startswith("race: ") for message in messages), messages)
        self.assertEqual(self.query("select count(*) from winners"), [(0,)])

    def test_a_winner_is_run_twenty_times(self):
        result = self.tuned("false")
        self.assertEqual(result.returncode, 0, result.stderr)
        ((method,),) = self.query("select method from winners")
        self.assertIn("equal bits in 20 runs, 10 of them on a busy device", method)
        winner = json.loads(result.stdout)["winner"]
        self.assertIn("equal bits in 20 runs", winner["verdict"]["method"])
        self.assertEqual(winner["determinism"], {"runs": 20, "busy": 10, "differing": 0})
        self.shown("equal bits in 20 runs, 10 of them on a busy device", "equal bits, 20 runs")

    def shown(self, text, short):
        """Expects what the database has of repeated runs in show, in list, and on the report's page."""
        self.assertIn(text, " ".join(self.run_tune("show", "--db", self.db).stdout.split()))
        listed = self.run_db("list").stdout
        self.assertIn("repeated", listed)
        self.assertIn(short, listed)
        page = self.folder / "page.html"
        made = self.run_words(os.environ["GRETA_REPORT"], self.db, "--out", page)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn(text, page.read_text())

    def test_what_is_declared_unordered_may_differ(self):
        description = self.folder / "faulty/arrival.jsonc"
        description.write_text(description.read_text().replace('"language"', '"unordered": true, "language"'))
        result = self.tuned("true")
        self.assertEqual(result.returncode, 0, result.stderr)
        ((method,),) = self.query("select method from winners")
        self.assertRegex(method, r"other bits of \d+ elements, as sums have no fixed order, in 20 runs")
        found = json.loads(result.stdout)["winner"]["determinism"]
        self.assertEqual((found["runs"], found["busy"]), (20, 10))
        self.assertIn(f"other bits of {found['differing']} elements", method)
        self.shown(method.split("; ")[-1], f"{found['differing']} elements differ, 20 runs")

    def test_errors_are_one_line(self):
        self.refused(self.run_tune("diagnose", self.folder), 2, "failure.json")
        self.refused(self.run_tune("diagnose", self.folder / "none"), 2, "none: No such file or directory")
        (self.folder / "broken").mkdir()
        pathlib.Path(self.folder, "broken/failure.json").write_text("{}")
        self.refused(self.run_tune("diagnose", self.folder / "broken"), 2, "schema 1")
        pathlib.Path(self.folder, "broken/failure.json").write_text('{"schema": 1, "gre')
        self.refused(self.run_tune("diagnose", self.folder / "broken"), 2, "is not JSON")
        case, _ = self.keep("missing_slice")
        (case / "case.json").unlink()
        self.refused(self.run_tune("diagnose", case), 2, "case.json")


if __name__ == "__main__":
    unittest.main()
