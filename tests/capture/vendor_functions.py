"""The products of the vendors' libraries and their arguments, as the vendors document them, written independently of
libgreta-capture.so: p is a pointer, i an int, l a 64-bit integer, and I an int, or a 64-bit integer in functions whose
names end in _64."""

GEMM = "p ii III p pI pI p pI"
BATCHED = GEMM + " I"
STRIDED = "p ii III p pIl pIl p pIl I"
TYPED = "p ii III p piI piI p piI"
EX = TYPED + " ii"
BATCHED_EX = TYPED + " I ii"
STRIDED_EX = "p ii III p piIl piIl p piIl I ii"
GROUPED = "p pp ppp p pp pp p pp I p"
GROUPED_EX = "p pp ppp p pip pip p pip I p i"
ROCBLAS_EX = "p ii III p piI piI p piI piI ii ii"
ROCBLAS_BATCHED_EX = "p ii III p piI piI p piI piI I ii ii"
ROCBLAS_STRIDED_EX = "p ii III p piIl piIl p piIl piIl I ii ii"
MATMUL = "pp p pp pp p pp pp p pl p"


def both(names):
    """Returns the functions with both widths of extents."""
    return {name + suffix: form for name, form in names.items() for suffix in ("", "_64")}


def typed(pattern, letters, form):
    return {pattern.format(letter): form for letter in letters}


FUNCTIONS = {
    "libcublas.so.12": both(
        typed("cublas{}gemm_v2", "SDCZ", GEMM) | {"cublasHgemm": GEMM, "cublasCgemm3m": GEMM, "cublasZgemm3m": GEMM}
        | typed("cublas{}gemmBatched", "HSDCZ", BATCHED) | {"cublasCgemm3mBatched": BATCHED}
        | typed("cublas{}gemmStridedBatched", "HSDCZ", STRIDED) | {"cublasCgemm3mStridedBatched": STRIDED}
        | {"cublasSgemmEx": TYPED, "cublasCgemmEx": TYPED, "cublasCgemm3mEx": TYPED, "cublasGemmEx": EX,
           "cublasGemmBatchedEx": BATCHED_EX, "cublasGemmStridedBatchedEx": STRIDED_EX,
           "cublasGemmGroupedBatchedEx": GROUPED_EX}
        | typed("cublas{}gemmGroupedBatched", "SD", GROUPED)),
    "libcublasLt.so.12": {"cublasLtMatmul": MATMUL},
    "librocblas.so.4": both(
        typed("rocblas_{}gemm", "hsdcz", GEMM) | typed("rocblas_{}gemm_batched", "hsdcz", BATCHED)
        | typed("rocblas_{}gemm_strided_batched", "hsdcz", STRIDED)
        | {"rocblas_gemm_ex": ROCBLAS_EX, "rocblas_gemm_batched_ex": ROCBLAS_BATCHED_EX,
           "rocblas_gemm_strided_batched_ex": ROCBLAS_STRIDED_EX}),
    "libhipblas.so.2": both(
        typed("hipblas{}gemm", "HSDCZ", GEMM) | typed("hipblas{}gemmBatched", "HSDCZ", BATCHED)
        | typed("hipblas{}gemmStridedBatched", "HSDCZ", STRIDED)
        | {"hipblasGemmEx": EX, "hipblasGemmBatchedEx": BATCHED_EX, "hipblasGemmStridedBatchedEx": STRIDED_EX,
           "hipblasGemmExWithFlags": EX + " i"})
        | {"hipblasGemmEx_v2": EX, "hipblasGemmBatchedEx_v2": BATCHED_EX, "hipblasGemmStridedBatchedEx_v2": STRIDED_EX,
           "hipblasGemmExWithFlags_v2": EX + " i"},
    "libhipblaslt.so.0": {"hipblasLtMatmul": MATMUL},
}
FILES = {name: file for file, names in FUNCTIONS.items() for name in names}


def types_of(name):
    """Returns the C types of a function's arguments."""
    wide = name.endswith("_64")
    types = {"p": "void*", "i": "int", "l": "long", "I": "long" if wide else "int"}
    return [types[letter] for letter in FUNCTIONS[FILES[name]][name].replace(" ", "")]
