"""Protects: no control character from a database, a preset, a capture, a table, a model, a file
name or the environment reaches a terminal, for every tool and command, and no such text begins a
line that looks like the tool's output."""
import json
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import unittest

from cli_case import BENCH, DB, SMALL, SOURCE, TUNE, database_of_ceilings, limit
from sealed_database import checksum, fingerprint
from test_bench_compare import BenchCompare
from test_greta_db import Tuned
from test_greta_run import RUN, TINY

# ESC, CSI as ESC [ and as C1, BEL, carriage return, a forged line, DEL, an OSC, and an invalid
# UTF-8 byte.
EVIL = b"\x1b[2J\xc2\x9b1m\x07\r\nFORGED: done\n\x7f\x1b]0;title\x07\xff"
EVIL_TEXT = EVIL[:-1].decode()  # where only UTF-8 is possible: JSON, and names of files
RAW = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
# Identities. If they are changed, nothing is found, and nothing would be shown.
IDENTITIES = {"fingerprint", "key", "problem", "op", "dtype", "out_dtype", "dims", "status", "config",
              "variant", "stand_in", "check_name", "regret_source", "parameters", "seed", "kind", "phase"}

ESCAPED = b"\\xc2\\x9b"  # an escape of EVIL; some layers replace other characters earlier
QUICK = ["--budget", "1", "--no-lock", "--flush", "1", "--device", "vulkan:0"]
TINY_TUNE = [*SMALL, *QUICK]


def infect(file, everything):
    """Adds EVIL to every text of a database, with `everything` also to identities, and updates
    checksums."""
    connection = sqlite3.connect(file)
    connection.text_factory = bytes
    tables = [row[0].decode() for row in connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table'")]
    changed = 0
    for table in tables:
        if table == "ceilings" and not everything:
            continue  # with another driver's name they would be measured again
        columns = [(name.decode(), kind.decode()) for _, name, kind, *_ in
                   connection.execute(f"PRAGMA table_info({table})")]
        for name, kind in columns:
            if kind != "TEXT" or (name in IDENTITIES and not everything):
                continue
            try:
                changed += connection.execute(
                    f"UPDATE {table} SET {name} = CAST(CAST({name} AS BLOB) || ? AS TEXT)"
                    f" WHERE {name} IS NOT NULL", (EVIL,)).rowcount
            except sqlite3.IntegrityError:  # JSON, and values from a list
                pass
    for number, info in connection.execute("SELECT id, info FROM devices").fetchall():
        info = json.loads(info)
        for name in ("name", "driver", "compiler"):
            if isinstance(info.get(name), str):
                info[name] += EVIL_TEXT
        connection.execute("UPDATE devices SET info = ?, fingerprint = ? WHERE id = ?",
                           (json.dumps(info), fingerprint(info), number))
    # In SQL, because text with invalid UTF-8 can't be an argument of a Python function.
    for table in tables:
        names = [row[1].decode() for row in connection.execute(f"PRAGMA table_info({table})")]
        if "checksum" not in names:
            continue
        names.remove("checksum")
        keys = [row[1].decode() for row in connection.execute(f"PRAGMA table_info({table})") if row[5]]
        for row in connection.execute(f"SELECT {', '.join(names)} FROM {table}").fetchall():
            words = [word for pair in zip(names, row) for word in pair]
            where = " AND ".join(f"CAST({key} AS BLOB) IS CAST(? AS BLOB)" for key in keys)
            connection.execute(f"UPDATE {table} SET checksum = ? WHERE {where}",
                               (checksum(*words, bytes_are_text=True),
                                *(row[names.index(key)] for key in keys)))
    connection.commit()
    connection.close()
    return changed


class HostileText(Tuned):
    def said(self, *words, env=None, logs=False):
        """Returns the output of a tool, which may contain no byte that a terminal interprets. With
        `logs` it may contain compiler logs, which have several lines."""
        result = subprocess.run(words, env=env or self.env, capture_output=True, cwd=self.folder,
                                timeout=limit(120), stdin=subprocess.DEVNULL)
        for text in (result.stdout, result.stderr):
            found = RAW.search(text)
            where = found and text[max(0, found.start() - 60):found.end() + 20]
            self.assertIsNone(found, f"{words}: {where}")
            if not logs:
                self.assertIsNone(re.search(rb"(?m)^FORGED", text), f"{words}: {text}")
            text.decode()  # must be UTF-8
        self.assertGreaterEqual(result.returncode, 0, f"{words} died")
        return result.stdout + result.stderr

    def named(self, name, text=None):
        """Returns a file in the test's folder, with `text` as its contents."""
        file = os.path.join(os.fsencode(self.folder), name)
        if text is not None:
            with open(file, "wb") as out:
                out.write(text)
        return file

    def with_ceilings(self, name):
        """Returns a database with the ceilings of the devices that QUICK uses, which take long to
        measure."""
        return shutil.copy(database_of_ceilings("vulkan:0", self.env), self.folder / name)

    def test_databases(self):
        looks = [["info"], ["list"], ["list", "--csv"], ["list", "--json"], ["list", "--stale"], ["show"],
                 ["show", "--json"], ["regret"], ["regret", "--json"],
                 ["verify"], ["info", "--json"], ["prune", "--failed", "--trials", "--dry-run"],
                 ["requalify", "--device", "none"], ["upgrade"],
                 ["export", "--format", "csv", "--out", "o.csv"],
                 ["export", "--ship", "--out", "shipped.db"]]
        shown = {}
        for everything in (False, True):
            shutil.copy(self.template, self.db)
            self.assertGreater(infect(self.db, everything), 20)
            if not everything:
                self.assertIn(b"is intact", self.said(DB, "verify", "--db", self.db))
            for look in looks:
                told = self.said(DB, *look, "--db", self.db)
                shown[look[0]] = shown.get(look[0], b"") + told
            for words in ([DB, "merge", self.db, "--db", "merged.db"],
                          [TUNE, "show", "--db", self.db], [TUNE, "devices", "--db", self.db],
                          [BENCH, "--benchmark_list_tests=true", "--device", "vulkan:0", "--db",
                           self.db]):
                self.said(*words)
            if everything:
                continue  # its contents can't be found any more
            # Adds the device under its true name, with its ceilings.
            self.said(DB, "merge", self.with_ceilings("known.db"), "--db", self.db)
            for words in ([RUN, "--model", SOURCE / "tests/data/stories260K/stories260K.bin", "--db",
                           self.db, "--explain", "--prompt", "x", "--device", "lavapipe"],
                          [TUNE, *TINY_TUNE, "--db", self.db],
                          [TUNE, *TINY_TUNE, "--json", "--shipped", self.db, "--db",
                           self.with_ceilings("other.db")]):
                self.said(*words)
        for command in ("info", "list", "show"):  # the hostile text was shown, escaped
            self.assertIn(rb"\x1b[2J", shown[command], command)

    def test_files_that_are_read(self):
        evil = EVIL_TEXT
        preset = self.named(b"preset.json", json.dumps(
            {"budget": evil, "problems": [{"op": evil, evil: evil}]}).encode())
        broken = self.named(b"broken.json", b'{"problems": [' + EVIL)
        capture = self.named(b"capture.jsonl", json.dumps(
            {"greta_capture": 1, "device": evil, "fingerprint": evil, "greta": evil}).encode() + b"\n" +
            json.dumps({"problem": "gemm " + evil, "count": 1, "device_us": 1}).encode() + b"\n")
        other = self.named(b"other.jsonl", json.dumps(
            {"greta_capture": 1, "device": evil, "fingerprint": evil, "greta": evil}).encode() + b"\n" +
            json.dumps({"problem": "gemm dtype=f32 out=f32 m=8 n=8 k=8", "count": 1,
                        "device_us": 1}).encode() + b"\n")
        table = self.named(b"t.csv", b"Validator,PT_VERSION," + EVIL + b"\nGemmTunableOp_float_NN," + EVIL +
                           b",Gemm_Rocblas_1,0.1\nGemmTunableOp_float_NN,nn_8_8_8," + EVIL + b",0.1\n")
        baselines = [BenchCompare.baseline(self, f"{name}.csv", device=name + evil.replace("\n", ""))
                     for name in "ab"]
        case = self.named(b"case")
        os.mkdir(case)
        self.named(b"case/case.json", json.dumps(
            {"schema": 1, "op": evil, "problem": evil, "config": evil, "arch": evil, "buffers": {evil: {}},
             "launches": []}).encode())
        for words in ([TUNE, "preset", preset], [TUNE, "preset", broken], [BENCH, "--preset", preset],
                      [TUNE, "from-capture", capture],
                      [TUNE, "from-capture", other, *QUICK, "--db", self.with_ceilings("c.db")],
                      [DB, "import", table, "--db", "i.db"], [DB, "info", "--db", "i.db"],
                      [BENCH, "compare", *baselines], [BENCH, "compare", "--any-device", *baselines],
                      [TUNE, "run-case", case], [TUNE, *SMALL, "--csv", broken],
                      [TUNE, *SMALL, "--try", evil], [TUNE, *SMALL, "--device", evil], [TUNE, evil],
                      [TUNE, "--" + evil]):
            told = self.said(*words)
            if not {broken, case, "info", "--" + evil} & set(words):
                self.assertIn(ESCAPED, told, words)
        for form in ("markdown", "json", "github"):  # which have other escapes
            told = self.said(BENCH, "compare", "--any-device", *baselines, "--format", form)
            self.assertIn(b"title", told, form)

    def test_models(self):
        evil = EVIL_TEXT
        tensor = {"dtype": evil, "shape": [1], "data_offsets": [0, 4]}
        header = json.dumps({evil: tensor}).encode()
        known = json.dumps({evil: {**tensor, "dtype": "F32"}}).encode()
        for index, (config, weights, tokenizer) in enumerate((
                ({**TINY, "model_type": evil}, header, b"{}"),
                ({**TINY, "hidden_act": evil}, header, b"{}"),
                (TINY, header, b"{}"), (TINY, known, b"{}"), (TINY, b"{" + EVIL, b"{}"),
                ({**TINY, "rope_scaling": {"rope_type": evil, "factor": 2}}, known, b"{}"))):
            folder = self.folder / f"model{index}"
            folder.mkdir()
            (folder / "config.json").write_text(json.dumps(config))
            (folder / "model.safetensors").write_bytes(
                struct.pack("<Q", len(weights)) + weights + b"\0\0\0\0")
            (folder / "tokenizer.json").write_bytes(tokenizer)
            told = self.said(RUN, "--model", folder, "--prompt", "x", "--device", "lavapipe")
            self.assertIn(b"greta-run: ", told)
            if index in (0, 1, 2, 5):
                self.assertIn(b"u001b" if b"u001b" in told else ESCAPED, told)
        (self.folder / "model0" / "config.json").write_bytes(EVIL)
        self.said(RUN, "--model", self.folder / "model0")
        self.said(TUNE, "model", "--config", self.folder / "model0" / "config.json")

    def test_what_a_model_writes(self):
        # Tokens of the story model are replaced by control characters of the same length.
        data = bytearray((SOURCE / "tests/data/stories260K/tok512.bin").read_bytes())
        at, changed = 4, 0
        for number in range(512):
            length = struct.unpack_from("<i", data, at + 4)[0]
            text = bytes(data[at + 8:at + 8 + length])
            if number >= 259 and text.decode() in (" there", " was", " little", " girl", ","):
                data[at + 8:at + 8 + length] = (b"\x1b[2J\x07\x7f\x9b"[:length])
                changed += 1
            at += 8 + length
        self.assertGreater(changed, 3)
        tokenizer = self.named(b"tok512.bin", bytes(data))
        words = [RUN, "--model", SOURCE / "tests/data/stories260K/stories260K.bin", "--tokenizer",
                 tokenizer, "--prompt", "Once upon a time", "--tokens", "12", "--device", "lavapipe"]
        told = self.said(*words)
        self.assertIn(rb"\x1b[2", told)
        self.said(*words, "--json")

    def test_devices_and_compilers(self):
        """The compiler determines the description of hip-host's device, and here it prints hostile
        text."""
        folder = self.folder / "bin"
        folder.mkdir()
        (folder / "said").write_bytes(EVIL)
        compiler = folder / "c++"
        compiler.write_text(f"""#!/bin/sh
if [ "$1" = --version ]; then tr -d '\\n' < {folder}/said; exit; fi
if [ -e {folder}/fails ]; then cat {folder}/said >&2; echo "error: $(cat {folder}/said)" >&2; exit 1; fi
exec {shutil.which("c++")} "$@"
""")
        compiler.chmod(0o755)
        env = dict(self.env, PATH=f"{folder}:{self.env['PATH']}", XDG_CACHE_HOME=str(self.folder / "cache"))
        tune = [TUNE, *TINY_TUNE[:-1], "hip-host:0", "--db", "hip.db"]
        verify = [TUNE, "verify", "softmax", "--device", "hip-host:0", "--problems", "1"]
        for words in ([TUNE, "devices"], [TUNE, "devices", "--json"], verify):
            told = self.said(*words, env=env, logs=words == verify)
            if words == [TUNE, "devices"]:
                self.assertIn(ESCAPED, told, words)
        (folder / "fails").touch()
        for words in (tune, [*tune, "--json"], [DB, "info", "--db", "hip.db"],
                      [DB, "list", "--db", "hip.db"], verify):
            told = self.said(*words, env=env, logs=words == verify)
        self.assertIn(ESCAPED, told)

    def test_names_of_files_and_the_environment(self):
        name = EVIL.replace(b"/", b"")
        there = self.named(name, b"text")
        for file in (there, self.named(b"no such" + name)):
            for words in ([TUNE, "preset", file], [TUNE, "from-capture", file], [DB, "info", "--db", file],
                          [DB, "merge", file, "--db", "m.db"], [DB, "import", file, "--db", "m.db"],
                          [DB, "verify", "--db", file], [BENCH, "compare", file, file],
                          [BENCH, "--preset", file], [TUNE, *SMALL, "--shipped", file],
                          [TUNE, "run-case", file], [TUNE, "model", "--config", file],
                          [RUN, "--model", file], [RUN, "bench", "--config", file]):
                self.assertIn(ESCAPED, self.said(*words), words)
        for file in (there, self.with_ceilings(os.fsdecode(b"tuned" + name))):
            self.assertIn(ESCAPED, self.said(TUNE, *TINY_TUNE, "--db", file))
        shutil.copy(self.template, there)
        self.assertIn(ESCAPED, self.said(DB, "list", "--db", there))
        env = {os.fsencode(key): os.fsencode(value) for key, value in self.env.items()}
        env[b"XDG_DATA_HOME"] = b"/tmp/" + name.replace(b"\n", b"")
        for tool in (TUNE, DB, BENCH, RUN):
            for words in (["--help"], ["--version"], ["--manual"]):
                self.said(tool, *words, env=env)
        self.assertIn(ESCAPED, self.said(TUNE, "gemm", "--help", env=env))
        self.assertIn(ESCAPED, self.said(DB, "info", env=env))


if __name__ == "__main__":
    unittest.main()
