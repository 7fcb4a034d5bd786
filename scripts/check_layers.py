#!/usr/bin/env python3
"""Checks the layering of docs/architecture.md in a source tree.

* A file includes, in quotes and by its path from the root, only files of the same layer and of the
  layers below it. Includes form no cycle.
* A source includes its header first, which proves that the header compiles alone.
* Nothing below the command line layer reads the environment. A single file prints, and a single
  one opens files for reading.
* A file declares names only in its layer's namespace, and a source defines no type with external
  linkage.

Prints one line per violation and exits with 1 if there are any.
"""

import argparse
import pathlib
import re
import sys

# Each layer's folder, and the layers it may include besides itself.
LAYERS = {
    "runtime/device": [],
    "runtime/capture": [],
    "kernels": ["runtime/device"],
    "db": ["kernels", "runtime/device"],
    "runtime/pipeline": ["db", "kernels", "runtime/device"],
    "tuner": ["db", "kernels", "runtime/device"],
    "tuner/model": ["tuner", "runtime/pipeline", "db", "kernels", "runtime/device"],
    # The tuner's C interface shares with the runtime's how errors and options cross the border.
    "tuner/c": ["tuner", "runtime/pipeline", "db", "kernels", "runtime/device"],
    "tuner/cli": ["tuner/model", "tuner", "runtime/pipeline", "db", "kernels", "runtime/device"],
}
# Each layer's namespace.
NAMESPACES = {
    "runtime/device": "greta::device",
    "runtime/capture": "greta::capture",
    "kernels": "greta::kernels",
    "db": "greta::db",
    "runtime/pipeline": "greta::runtime",
    "tuner": "greta::tuner",
    "tuner/model": "greta::tuner::model",
    "tuner/c": "greta::tuner::c",
    "tuner/cli": "greta::tuner::cli",
}
# The header that makes lower layers' names visible in each namespace.
VISIBLE = "runtime/device/layers.hpp"
# Compiled for devices, so it belongs to no layer.
LANGUAGE = "runtime/device/hip/host/language/"
# Loaded into other programs, so that it uses no other part of GRETA and reads its settings itself.
LOADED = "runtime/capture/"
# Copied into kernel projects, which are built without GRETA.
COPIED = "tuner/project/program/"
ROOTS = sorted({layer.split("/")[0] for layer in LAYERS})
SUFFIXES = {".cpp", ".hpp", ".c", ".h"}

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
ANY_INCLUDE = re.compile(r"^\s*#\s*include\b")
# Actions that only some places may perform: the allowed files or folders, and the pattern.
RESERVED = [
    ("read the environment", ["tuner/cli", LOADED + "process.cpp"], re.compile(r"\b(?:secure_)?getenv\s*\(")),
    # The helper's output is read by the process that started it.
    ("print", ["tuner/report/print.cpp", "runtime/device/hip/helper/main.cpp"],
     re.compile(r"\bfmt::v?print\b|\b(?:v?f?printf|f?puts|fputc|putchar|fwrite|perror)\s*\("
                r"|\bcout\s*<<|\bcerr\s*<<|\bclog\b")),
    ("open a file to read it", ["runtime/device/system/input_file.cpp"],
     re.compile(r"\bifstream\b|\bstd::fstream\b|\bfopen\s*\(|\bO_RDONLY\b(?!\s*\|\s*O_DIRECTORY)")),
]
NAMESPACE = re.compile(r"^namespace (greta\b[\w:]*) \{$")
TYPE = re.compile(r"^(?:struct|class|union|enum class|enum) (\w+)\b(?!::)[^;]*\{")
# Opens or closes a scope whose names are local to the file.
OWN = re.compile(r"^(?:namespace \{|\}  // namespace)$")
COMMENT = re.compile(r"//.*")


def layer_of(path):
    """Returns the layer of a path relative to the root: the longest matching folder; else None."""
    matches = [layer for layer in LAYERS if path.startswith(layer + "/")]
    return max(matches, key=len, default=None)


def read_tree(root):
    """Reads all source files of the layers' top-level folders: path relative to the root ->
    lines."""
    files = {}
    for top in ROOTS:
        for path in sorted((root / top).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in SUFFIXES and path.is_file() and not name.startswith(COPIED):
                files[name] = path.read_text().splitlines()
    return files


def check_line(path, layer, line):
    """Returns the violations of a line and the path it includes (None if it includes nothing)."""
    code = COMMENT.sub("", line)
    for what, places, pattern in RESERVED:
        if pattern.search(code) and not any(path == place or path.startswith(place + "/")
                                            for place in places):
            return f"{layer} must not {what}; only {places[0]} may", None
    include = INCLUDE.match(line)
    if not include:
        return None, None
    target = include.group(1)
    target_layer = layer_of(target)
    if target_layer is None:
        return f"'{target}' is in no layer; name files by their path from the root", None
    if target_layer != layer and target_layer not in LAYERS[layer]:
        allowed = ", ".join(LAYERS[layer]) or "no other layer"
        return f"{layer} must not include {target_layer} (it may include: {allowed})", target
    return None, target


def check_own_header(path, lines, files):
    """Checks the first include of a source that has a header. Returns the violation or None."""
    header = path.removesuffix(".cpp") + ".hpp"
    if not path.endswith(".cpp") or header not in files:
        return None
    first = next((line for line in lines if ANY_INCLUDE.match(line)), "")
    include = INCLUDE.match(first)
    if include and include.group(1) == header:
        return None
    return f"{path}: must include {header} before anything else"


def check_names(path, layer, lines):
    """Returns the violations of a file's namespaces and types."""
    if path == VISIBLE:
        return
    own, own_names = NAMESPACES[layer], False
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}: {line.strip()}\n    "
        namespace = NAMESPACE.match(line)
        if namespace and not (namespace.group(1) + "::").startswith(own + "::"):
            yield f"{where}{layer} declares names in {own}"
        if OWN.match(line) or line == f"namespace {pathlib.PurePath(path).stem} {{":
            own_names = not line.startswith("}")
        defined = TYPE.match(line)
        if defined and path.endswith(".cpp") and not own_names:
            yield (f"{where}another source may define {defined.group(1)}, too; define it in an "
                   "unnamed namespace, or in a header")


def check_visible(files, graph):
    """Returns headers that don't reach VISIBLE through their includes: every include without
    further includes must include it."""
    for path in files:
        if path.endswith(".hpp") and not graph.get(path) and path != VISIBLE \
                and not path.startswith((LANGUAGE, LOADED)):
            yield f"{path}: must include {VISIBLE}, as it includes no other header of GRETA"


def find_cycles(graph):
    """Returns each include cycle once, as a list of paths that ends with its first element."""
    cycles, state, trail = [], {}, []

    def visit(path):
        state[path] = "open"
        trail.append(path)
        for target in graph.get(path, []):
            if state.get(target) == "open":
                cycles.append(trail[trail.index(target):] + [target])
            elif target not in state:
                visit(target)
        trail.pop()
        state[path] = "done"

    for path in graph:
        if path not in state:
            visit(path)
    return cycles


def check(root):
    """Returns all violations below a root, as text lines, and the number of files."""
    violations, graph = [], {}
    files = read_tree(root)
    for path, lines in files.items():
        layer = layer_of(path)
        if layer is None:
            violations.append(f"{path}: in no layer; the layers are {', '.join(LAYERS)}")
            continue
        violations += filter(None, [check_own_header(path, lines, files)])
        for number, line in enumerate(lines, 1):
            problem, target = check_line(path, layer, line)
            if problem:
                violations.append(f"{path}:{number}: {line.strip()}\n    {problem}")
            if target:
                graph.setdefault(path, []).append(target)
        violations += check_names(path, layer, lines)
    violations += check_visible(files, graph)
    violations += [f"include cycle: {' -> '.join(cycle)}" for cycle in find_cycles(graph)]
    return violations, len(files)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    violations, count = check(root)
    if count == 0:
        violations = [f"no source files below {root}"]
    for violation in violations:
        print(violation)
    print(f"{count} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
