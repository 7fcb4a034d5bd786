"""Protects: the package declares exactly what greta.h and greta_tune.h do, in the same form, and
finds, loads and checks the libraries."""

import ctypes
import re
import shutil
import subprocess
import sys
import unittest

from python_case import LIBRARY, SOURCE, TUNER, Case, cli_case, greta

from greta import _abi, _library

HEADERS = [SOURCE / "runtime/pipeline/c/greta.h", SOURCE / "tuner/c/greta_tune.h"]
NUMBERS = {
    "void": None, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64, "size_t": ctypes.c_size_t, "float": ctypes.c_float,
    "double": ctypes.c_double, "greta_release": _abi.RELEASE, "greta_tune_observer": _abi.OBSERVER,
    "greta_tune_reference": _abi.REFERENCE,
}


class Header:
    """What the headers declare, as ctypes would."""

    def __init__(self):
        text = "\n".join(header.read_text() for header in HEADERS)
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
        text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
        self.numbers = dict(NUMBERS)
        for base, name in re.findall(r"typedef (int32_t) (\w+);", text):
            self.numbers[name] = NUMBERS[base]
        self.opaque = set(re.findall(r"typedef struct (\w+) \1;", text))
        self.enumerations = [
            {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", body)}
            for body in re.findall(r"enum \{(.*?)\}", text, re.DOTALL)]
        self.structs = {
            name: self.fields(body)
            for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\}", text, re.DOTALL)}
        self.functions = {
            name: (self.type_of(result), self.arguments(arguments))
            for result, name, arguments in re.findall(
                r"GRETA_API ([^;()]*?)\b(greta_\w+)\(([^)]*)\);", text)}
        self.callbacks = {
            name: (self.type_of(result), self.arguments(arguments))
            for result, name, arguments in re.findall(
                r"typedef (\w+) \(\*(\w+)\)\(([^)]*)\);", text)}

    def type_of(self, text):
        text = " ".join(text.replace("*", " * ").replace(" const ", " ").split())
        text = text.removeprefix("const ")
        base, stars = text.split()[0], text.count("*")
        if stars == 0:
            return self.numbers[base] if base in self.numbers else _abi.STRUCTS[base]
        if base == "char":
            pointer = ctypes.c_char_p
        elif base in self.opaque or base == "void":
            pointer = ctypes.c_void_p
        else:
            pointer = ctypes.POINTER(self.type_of(base))
        for _ in range(stars - 1):
            pointer = ctypes.POINTER(pointer)
        return pointer

    def arguments(self, text):
        if text.strip() == "void":
            return []
        return [self.type_of(re.match(r"(.*?)\w+$", one.strip(), re.DOTALL).group(1))
                for one in text.split(",")]

    def fields(self, body):
        fields = []
        for line in filter(None, (part.strip() for part in body.split(";"))):
            kind, names = re.match(r"(.*?)(\w+(?:\s*,\s*\w+)*)$", line, re.DOTALL).groups()
            fields += [(name.strip(), self.type_of(kind)) for name in names.split(",")]
        return fields


class Abi(Case):
    def setUp(self):
        super().setUp()
        self.header = Header()

    def test_the_version_is_the_header_s(self):
        text = HEADERS[0].read_text()
        self.assertEqual(int(re.search(r"#define GRETA_ABI_VERSION (\d+)", text).group(1)),
                         _abi.ABI_VERSION)

    def test_enumerations(self):
        self.assertEqual(len(self.header.enumerations), 12)
        self.assertEqual(self.header.enumerations, list(_abi.ENUMERATIONS))

    def test_structs(self):
        self.assertEqual(len(self.header.structs), 13)
        self.assertEqual(self.header.structs,
                         {name: one._fields_ for name, one in _abi.STRUCTS.items()})

    def test_functions(self):
        self.assertGreater(len(self.header.functions), 65)
        self.assertEqual(self.header.functions, {**_abi.RUNTIME, **_abi.TUNER})

    def test_callbacks(self):
        declared = {"greta_release": _abi.RELEASE, "greta_tune_observer": _abi.OBSERVER,
                    "greta_tune_reference": _abi.REFERENCE}
        self.assertEqual(self.header.callbacks, {
            name: (one._restype_, list(one._argtypes_)) for name, one in declared.items()})

    def test_sizes_are_the_library_s(self):
        for name, struct in _abi.STRUCTS.items():
            if not name.endswith("_options"):
                continue
            with self.subTest(name):
                library = greta._library.tuner_library() if "tune" in name \
                    else greta._library.runtime_library()
                defaults = getattr(library, name.replace("_options", "_defaults"))()
                self.assertEqual(defaults.size, ctypes.sizeof(struct))

    def test_every_status_has_an_exception(self):
        self.assertEqual(set(greta.errors.CLASSES), set(_abi.STATUS) - {"GRETA_OK"})
        for error in greta.errors.CLASSES.values():
            self.assertTrue(issubclass(error, greta.GretaError))


class Loading(Case):
    def import_in(self, package, code):
        return subprocess.run([sys.executable, "-B", "-c", code], cwd=package.parent, text=True,
                              capture_output=True, timeout=cli_case.limit(60))

    def test_the_library_is_found_beside_the_package_and_in_its_prefix(self):
        name = f"libgreta.so.{_abi.ABI_VERSION}"
        places = {"beside": "greta", "prefix": "lib", "multiarch": "lib/x86_64-linux-gnu"}
        for kind, place in places.items():
            with self.subTest(kind):
                prefix = self.folder / kind
                package = prefix / ("greta" if kind == "beside" else "lib/python3/dist-packages/greta")
                shutil.copytree(SOURCE / "runtime/python/greta", package,
                                ignore=shutil.ignore_patterns("__pycache__"))
                folder = prefix / place
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(LIBRARY, folder / name)
                run = self.import_in(package, "import greta; print(greta.version())")
                self.assertEqual(run.stdout, greta.version() + "\n", run.stderr)

    def test_a_missing_library_is_one_line_that_names_the_remedy(self):
        package = self.folder / "greta"
        shutil.copytree(SOURCE / "runtime/python/greta", package)
        run = self.import_in(package, "import greta\ntry: greta.version()\n"
                                      "except greta.UnavailableError as error: print(error)")
        self.assertRegex(run.stdout, r"^libgreta\.so is not beside .* greta\.load\(\) takes its path\n$")

    def test_the_environment_is_read_for_the_user_s_folders_only(self):
        for file in sorted((SOURCE / "runtime/python/greta").rglob("*.py")):
            read = re.findall(r"os\.environ|getenv", file.read_text())
            self.assertEqual(bool(read), file.name == "_folders.py", file.name)

    def test_what_is_no_library_of_greta_is_refused(self):
        text = self.folder / "libgreta.so"
        text.write_text("none")
        self.assert_refused(greta.UnavailableError, "can't be loaded", _library.Library,
                            str(text), *_library._KINDS["greta"])
        self.assert_refused(greta.UnavailableError, "can't be loaded: .*greta_abi_version",
                            _library.Library, TUNER, *_library._KINDS["greta"])
        self.assert_refused(greta.UnavailableError, "is loaded already", greta.load, str(text))

    def test_another_version_of_the_interface_is_refused(self):
        functions = {"greta_abi_version": (ctypes.c_int32, [])}
        self.addCleanup(setattr, _abi, "ABI_VERSION", _abi.ABI_VERSION)
        _abi.ABI_VERSION = 2
        self.assert_refused(greta.UnavailableError, "has version 1 .* needs 2", _library.Library,
                            LIBRARY, functions, "greta_abi_version", "greta_abi_version")


if __name__ == "__main__":
    unittest.main()
