"""The names of values of greta.h's enumerations, each at its number."""

LAYOUTS = ("nn", "nt", "tn", "tt")
ACTIVATIONS = ("none", "silu", "gelu", "swiglu", "geglu")
WEIGHTS = ("int4", "int8", "q4_0", "q8_0", "q4_k", "q6_k", "mxfp4")
PACKINGS = ("rows", "awq", "gptq", "gptq_v2", "panels")
NUMBERS = ("e4m3", "e5m2", "e4m3_fnuz", "e5m2_fnuz", "int8", "e2m1")
SCALES = ("tensor", "row", "block", "mx")
FORMS = ("tanh", "erf")
PAIRS = ("interleaved", "half")
SCORES = ("softmax", "sigmoid")
