"""Builds stand-ins for the vendors' libraries, which write down every call, and programs that call them."""
import pathlib
import subprocess

from vendor_functions import FILES, FUNCTIONS, types_of

# A call is written as its name and its arguments in hexadecimal. FAKE_STATUS is what it returns.
COMMON = r"""
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int note(const char* name, int count, const unsigned long* words) {
  const char* const file = getenv("FAKE_LOG");
  if (file != NULL) {
    FILE* const out = fopen(file, "a");
    fprintf(out, "%s", name);
    for (int i = 0; i < count; ++i) fprintf(out, " %lx", words[i]);
    fprintf(out, "\n");
    fclose(out);
  }
  const char* const status = getenv("FAKE_STATUS");
  return status != NULL ? atoi(status) : 0;
}
static int setting(const char* name) { return getenv(name) != NULL ? atoi(getenv(name)) : 0; }
"""

# Descriptors are tables of attributes; those of calls.c are none. As in the libraries, a wrong size is an error.
ATTRIBUTES = r"""
static int attribute(const long* table, int number, const char* wide, void* value, unsigned long bytes) {
  const unsigned long size = strchr(wide, 'a' + number) != NULL ? 8 : 4;
  if ((unsigned long)table >> 8 == 0x7f11223300 || number < 0 || number >= 40 || bytes != size) return 7;
  memcpy(value, &table[number], size);
  return 0;
}
"""
MODES = {
    "libcublas.so.12": ("cublasGetPointerMode_v2", "cublasGetMathMode"),
    "librocblas.so.4": ("rocblas_get_pointer_mode", "rocblas_get_math_mode"),
    "libhipblas.so.2": ("hipblasGetPointerMode", "hipblasGetMathMode"),
}
# Attributes of 8 bytes, as letters by number: rows, columns, ld, stride; pointers.
STREAMS = {"libcublas.so.12": "cublasGetStream_v2", "librocblas.so.4": "rocblas_get_stream", "libhipblas.so.2": "hipblasGetStream"}
DESCRIPTORS = {
    "libcublasLt.so.12": ("cublasLt", "cdeg", "rsuik"),
    "libhipblaslt.so.0": ("hipblasLt", "befg", "dfghik"),
}


# The runtimes below, with the functions that time calls. An event's number says which one it is, the least bits of a stream
# whether it is recorded into a graph. Of two events, the time is 1/8 ms for each event that was made before.
RUNTIMES = {
    "libcuda.so.1": ("cuEventCreate", "cuEventDestroy_v2", "cuEventRecord", "cuEventQuery", "cuEventElapsedTime", "cuStreamIsCapturing",
                     "cuThreadExchangeStreamCaptureMode"),
    "libamdhip64.so.6": ("hipEventCreateWithFlags", "hipEventDestroy", "hipEventRecord", "hipEventQuery", "hipEventElapsedTime",
                         "hipStreamIsCapturing", "hipThreadExchangeStreamCaptureMode"),
}
RUNTIME_OF = {"libcublas.so.12": "libcuda.so.1", "libcublasLt.so.12": "libcuda.so.1"}
EVENTS = r"""
static long made;
static _Thread_local int mode;
static int relaxed(void) { if (mode != 2) abort(); return 0; }
// Events of a device that was reset can't be asked for.
static int usable(void) { if (setting("FAKE_RESET")) abort(); return relaxed(); }
int CREATE(void** event, unsigned flags) { *event = (void*)++made; return relaxed(); }
int DESTROY(void* event) { if ((long)event > made) abort(); return usable(); }
int RECORD(void* event, void* stream) {
  relaxed();
  note("RECORD", 2, (unsigned long[]){(unsigned long)event, (unsigned long)stream});
  return 0;
}
int QUERY(void* event) { usable(); return setting("FAKE_NOT_READY") != 0 ? 600 : setting("FAKE_EVENT_ERROR"); }
int ELAPSED(float* ms, void* begin, void* end) { *ms = 0.125f * (float)(long)begin; return relaxed(); }
int CAPTURING(void* stream, int* result) { *result = setting("FAKE_IN_GRAPH"); return relaxed(); }
int EXCHANGE(int* wanted) { const int before = mode; mode = *wanted; *wanted = before; return 0; }
int cuCtxGetCurrent(void** context) { *context = (void*)7; return 0; }
int cuCtxSetCurrent(void* context) { return 0; }
int cuCtxGetDevice(int* device) { *device = 3; return 0; }
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  *active = device == 3 && !setting("FAKE_RESET");
  return 0;
}
int hipGetLastError(void) { return note("hipGetLastError", 0, NULL); }
int hipPeekAtLastError(void) { return setting("FAKE_LAST_ERROR"); }
"""


def runtime_source(file):
    """Returns the source of a runtime."""
    source = EVENTS
    for word, name in zip(("CREATE", "DESTROY", "RECORD", "QUERY", "ELAPSED", "CAPTURING", "EXCHANGE"), RUNTIMES[file]):
        source = source.replace(word, name)
    return COMMON + source


def fake_source(file):
    """Returns the source of a library."""
    parts = [COMMON]
    for name in FUNCTIONS[file]:
        types = types_of(name)
        arguments = ", ".join(f"{kind} a{i}" for i, kind in enumerate(types))
        words = ", ".join(f"(unsigned long)a{i}" if kind != "int" else f"(unsigned int)a{i}"
                          for i, kind in enumerate(types))
        nested = ""
        if name == "cublasGemmEx":  # cuBLAS calls cuBLASLt
            parts.append("int cublasLtMatmul();")
            nested = ("if (setting(\"FAKE_NESTED\")) cublasLtMatmul(" + ", ".join(["(void*)0"] * 14) + ", 0L, (void*)0);")
        parts.append(f"int {name}({arguments}) {{ {nested} return note(\"{name}\", {len(types)}, "
                     f"(unsigned long[]){{{words}}}); }}")
    for name, variable in zip(MODES.get(file, ()), ("FAKE_POINTER_MODE", "FAKE_MATH_MODE")):
        parts.append(f"int {name}(void* handle, int* mode) {{ *mode = setting(\"{variable}\"); return 0; }}")
    if file in STREAMS:
        parts.append(f"int {STREAMS[file]}(void* handle, void** stream) {{ *stream = (char*)handle + 0x500; return 0; }}")
    if file in DESCRIPTORS:
        prefix, layout, product = DESCRIPTORS[file]
        parts.append(ATTRIBUTES)
        for function, wide in (("MatrixLayout", layout), ("MatmulDesc", product)):
            parts.append(f"int {prefix}{function}GetAttribute(const void* object, int number, void* value, unsigned long "
                         f"bytes, unsigned long* written) {{ if (object == NULL) return 7; "
                         f"return attribute(object, number, \"{wide}\", value, bytes); }}")
        if prefix == "hipblasLt":
            parts.append("int hipblasLtMatmulDescCreate(void** made, int compute, int scale) "
                         "{ return note(\"hipblasLtMatmulDescCreate\", 2, "
                         "(unsigned long[]){(unsigned)compute, (unsigned)scale}); }")
    return "\n".join(parts)


def argument(kind, index, name):
    """Returns an argument that no other place of the call has. Factors, and the lists of grouped products, are read."""
    if name.endswith("LtMatmul"):
        return {2: "&alpha", 7: "&beta"}.get(index, f"({kind})0x7f11223300{index:02x}" if kind == "void*" else "1234567890123")
    grouped = "Grouped" in name
    if kind == "void*":
        if grouped:
            return ["(void*)0x7f1", "ops", "ops", "LIST", "LIST", "LIST", "factors", "(void*)0x7f2", "LIST", "(void*)0x7f3",
                    "LIST", "factors", "(void*)0x7f4", "LIST", "LIST", "LIST"][index - sum(
                        kind == "int" or kind == "long" for kind in types_of(name)[:index])]
        return {6: "factors"}.get(index, f"(void*)0x7f11223300{index:02x}") if index != 0 else "(void*)0x7f1122330000"
    if grouped and index in (14, 17):  # the number of groups
        return "2"
    return f"{100 + index}" if kind == "int" else f"{(1 << 34) + 100 + index}"


def calls_source():
    """Returns the source of a library whose function call_all() calls every function once."""
    lines = ["#include <stddef.h>", "static float alpha = 1, beta = 0;", "static float factors[4] = {0.5f, 0.25f, 0.5f, 0.25f};",
             "static int ops[2] = {0, 1};", "static int ints[2] = {40, 50}; static long longs[2] = {40, 50};"]
    body = []
    for name in FILES:
        types = types_of(name)
        lines.append(f"int {name}({', '.join(types)});")
        values = [argument(kind, i, name) for i, kind in enumerate(types)]
        # Factors: of functions without groups, the pointers before A and before C.
        if "Grouped" not in name and not name.endswith("LtMatmul"):
            pointers = [i for i, kind in enumerate(types) if kind == "void*"]
            values[pointers[4]] = "factors"
        values = ["longs" if value == "LIST" and name.endswith("_64") else "ints" if value == "LIST" else value
                  for value in values]
        body.append(f"  sum = sum * 31 + {name}({', '.join(values)});")
    return "\n".join(lines) + "\nint call_all(void) {\n  int sum = 0;\n" + "\n".join(body) + "\n  return sum;\n}\n"


def compile_all(commands):
    """Runs compilers side by side."""
    running = [subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
               for words in commands]
    for process in running:
        said = process.communicate()[0]
        if process.returncode != 0:
            raise AssertionError(f"{process.args}\n{said}")


def build(folder, compiler, application):
    """Builds the libraries, calls.so and the program `application`, linked and not linked with them."""
    folder = pathlib.Path(folder)
    sources = {file: runtime_source(file) for file in RUNTIMES} | {file: fake_source(file) for file in FUNCTIONS}
    commands = []
    for file, source in sources.items():
        (folder / f"{file}.c").write_text(source)
        # The vendors' symbols have versions.
        (folder / f"{file}.map").write_text(f"{file} {{ global: *; }};\n")
        commands.append([compiler, "-shared", "-fPIC", "-w", "-O0", folder / f"{file}.c", "-o", folder / file,
                         f"-Wl,-soname,{file}", f"-Wl,--version-script,{folder / file}.map"])
    def of(*files):
        return [words for words in commands if words[-3].name in files]
    linked = ["-Wl,--no-as-needed", f"-Wl,-rpath,{folder}"]
    compile_all(of(*RUNTIMES))
    compile_all([words + [*linked, folder / RUNTIME_OF.get(words[-3].name, "libamdhip64.so.6")]
                 for words in of(*(set(FUNCTIONS) - {"libcublas.so.12"}))])
    compile_all([words + [*linked, folder / "libcublasLt.so.12", folder / "libcuda.so.1"] for words in of("libcublas.so.12")])
    (folder / "calls.c").write_text(calls_source())
    libraries = [folder / file for file in FUNCTIONS]
    flags = ["-w", "-O1", f"-Wl,-rpath,{folder}"]
    common = [compiler, application, "-no-pie", "-pthread", "-ldl", "-Wl,--no-as-needed", *flags]
    compile_all([[compiler, "-shared", "-fPIC", "-Wl,--no-as-needed", folder / "calls.c", *libraries, *flags, "-o", folder / "calls.so"],
                 [*common, "-DLINKED", *libraries, "-o", folder / "linked"],
                 [*common, "-o", folder / "loading"]])
