"""Declarations of greta.h and greta_tune.h for ctypes. A test compares them with the headers."""

from ctypes import (CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_float, c_int32, c_int64,
                    c_size_t, c_uint32, c_uint64, c_void_p)
from typing import Any

ABI_VERSION = 1

STATUS = {
    "GRETA_OK": 0, "GRETA_CONSTRAINTS": 1, "GRETA_COMPILE": 2, "GRETA_LAUNCH": 3,
    "GRETA_TIMEOUT": 4, "GRETA_CRASH": 5, "GRETA_OUT_OF_MEMORY": 6, "GRETA_UNAVAILABLE": 7,
    "GRETA_INVALID_ARGUMENT": 8, "GRETA_DEVICE_LOST": 9, "GRETA_IO": 10, "GRETA_INTERNAL": 11,
    "GRETA_INTERRUPTED": 12,
}
DTYPE = {"GRETA_F32": 0, "GRETA_F16": 1, "GRETA_BF16": 2, "GRETA_I32": 3, "GRETA_F64": 4,
         "GRETA_I64": 5, "GRETA_U32": 6, "GRETA_I8": 7, "GRETA_U8": 8}
MEMORY = {"GRETA_DEVICE": 0, "GRETA_STAGING": 1}
LAYOUT = {"GRETA_NN": 0, "GRETA_NT": 1, "GRETA_TN": 2, "GRETA_TT": 3}
ACTIVATION = {"GRETA_NO_ACTIVATION": 0, "GRETA_SILU": 1, "GRETA_GELU": 2, "GRETA_SWIGLU": 3,
              "GRETA_GEGLU": 4}
GELU_FORM = {"GRETA_GELU_TANH": 0, "GRETA_GELU_ERF": 1}
WEIGHTS = {"GRETA_INT4": 0, "GRETA_INT8": 1, "GRETA_Q4_0": 2, "GRETA_Q8_0": 3, "GRETA_Q4_K": 4,
           "GRETA_Q6_K": 5, "GRETA_MXFP4": 6, "GRETA_SAME_WEIGHTS": 255}
PACKING = {"GRETA_NOT_PACKED": 0, "GRETA_AWQ": 1, "GRETA_GPTQ": 2, "GRETA_GPTQ_V2": 3,
           "GRETA_PANELS": 4}
NUMBERS = {"GRETA_E4M3": 0, "GRETA_E5M2": 1, "GRETA_E4M3_FNUZ": 2, "GRETA_E5M2_FNUZ": 3,
           "GRETA_NUMBERS_INT8": 4, "GRETA_E2M1": 5}
SCALES = {"GRETA_SCALES_OF_TENSORS": 0, "GRETA_SCALES_OF_ROWS": 1, "GRETA_SCALES_OF_BLOCKS": 2,
          "GRETA_SCALES_MX": 3}
ROPE_PAIRS = {"GRETA_INTERLEAVED": 0, "GRETA_HALF": 1}
ROLE = {"GRETA_TUNE_INPUT": 0, "GRETA_TUNE_OUTPUT": 1, "GRETA_TUNE_INPUT_OUTPUT": 2}
ENUMERATIONS = (STATUS, DTYPE, MEMORY, LAYOUT, ACTIVATION, GELU_FORM, WEIGHTS, PACKING, NUMBERS,
                SCALES, ROPE_PAIRS, ROLE)

HANDLE = c_void_p  # any pointer to an opaque object
RELEASE = CFUNCTYPE(None, c_void_p)
OBSERVER = CFUNCTYPE(None, c_void_p, c_char_p)


class RuntimeOptions(Structure):
    """greta_runtime_options"""
    _fields_ = [
        ("size", c_size_t), ("device", c_char_p), ("database", c_char_p), ("shipped", c_char_p),
        ("cache_directory", c_char_p), ("compile_helper", c_char_p),
        ("application", POINTER(c_char_p)), ("application_count", c_size_t),
        ("no_shipped", c_int32), ("allow_vendor", c_int32), ("no_overlap", c_int64)]


class GemmOptions(Structure):
    """greta_gemm_options"""
    _fields_ = [
        ("size", c_size_t), ("layout", c_int32), ("activation", c_int32), ("alpha", c_float),
        ("beta", c_float), ("bias", HANDLE), ("residual", HANDLE), ("norm_weight", HANDLE),
        ("norm_epsilon", c_float), ("tf32x3", c_int32), ("packing", c_int64)]


class QuantizedGemmOptions(Structure):
    """greta_quantized_gemm_options"""
    _fields_ = [
        ("size", c_size_t), ("weights", c_int32), ("activation", c_int32), ("scales", HANDLE),
        ("zeros", HANDLE), ("bias", HANDLE), ("residual", HANDLE), ("norm_weight", HANDLE),
        ("norm_epsilon", c_float), ("reserved", c_int32), ("rounded_weights", c_int64),
        ("packing", c_int64)]


class QuantizedGroupedGemmOptions(Structure):
    """greta_quantized_grouped_gemm_options"""
    _fields_ = [
        ("size", c_size_t), ("weights", c_int32), ("activation", c_int32), ("scales", HANDLE),
        ("zeros", HANDLE), ("packing", c_int64)]


class QuantizedExpertsOptions(Structure):
    """greta_quantized_experts_options"""
    _fields_ = [
        ("size", c_size_t), ("weights", c_int32), ("down_weights", c_int32), ("gate_up_scales", HANDLE),
        ("down_scales", HANDLE), ("gate_up_zeros", HANDLE), ("down_zeros", HANDLE),
        ("packing", c_int64)]


class RopeAppendOptions(Structure):
    """greta_rope_append_options"""
    _fields_ = [
        ("size", c_size_t), ("pairs", c_int32), ("epsilon", c_float), ("q_norm", HANDLE),
        ("k_norm", HANDLE), ("block_table", HANDLE)]


class SoftmaxOptions(Structure):
    """greta_softmax_options"""
    _fields_ = [("size", c_size_t), ("scale", c_float), ("causal", c_int32), ("mask", HANDLE)]


class RouteOptions(Structure):
    """greta_route_options"""
    _fields_ = [("size", c_size_t), ("sigmoid", c_int32), ("renormalise", c_int32),
                ("bias", HANDLE), ("scale", c_float), ("groups", c_int64), ("top_groups", c_int64)]


class AttentionOptions(Structure):
    """greta_attention_options"""
    _fields_ = [
        ("size", c_size_t), ("scale", c_float), ("causal", c_int32), ("window", c_int64),
        ("softcap", c_float), ("sinks", HANDLE), ("lse", HANDLE), ("block_table", HANDLE),
        ("cu_seqlens_q", HANDLE), ("cu_seqlens_k", HANDLE), ("ragged", c_int32), ("tree", HANDLE)]


class LatentAttentionOptions(Structure):
    """greta_latent_attention_options"""
    _fields_ = [("size", c_size_t), ("scale", c_float), ("causal", c_int32), ("tree", HANDLE),
                ("lse", HANDLE), ("block_table", HANDLE), ("ragged", c_int32)]


class NormOptions(Structure):
    """greta_norm_options"""
    _fields_ = [
        ("size", c_size_t), ("weight", HANDLE), ("bias", HANDLE), ("epsilon", c_float)]


class TuneOperand(Structure):
    """greta_tune_operand"""
    _fields_ = [
        ("name", c_char_p), ("role", c_int32), ("dtype", c_int32), ("shape", POINTER(c_int64)),
        ("rank", c_size_t), ("input", c_void_p), ("expected", POINTER(c_double))]


REFERENCE = CFUNCTYPE(c_int32, c_void_p, c_char_p, POINTER(TuneOperand), c_size_t)


class TuneOptions(Structure):
    """greta_tune_options"""
    _fields_ = [
        ("size", c_size_t), ("device", c_char_p), ("database", c_char_p),
        ("cache_directory", c_char_p), ("budget", c_char_p), ("strategy", c_char_p),
        ("worker", POINTER(c_char_p)), ("worker_count", c_size_t), ("observer", OBSERVER),
        ("context", c_void_p), ("flush_bytes", c_uint64), ("seed", c_uint64),
        ("has_seed", c_int32), ("warm", c_int32), ("naive", c_int32), ("reject_spills", c_int32),
        ("no_resume", c_int32), ("retry_failed", c_int32), ("for_energy", c_int32),
        ("pin", c_int32), ("no_lock", c_int32), ("allow_unsafe", c_int32),
        ("no_shipped", c_int32), ("allow_vendor", c_int32), ("kernel", c_char_p),
        ("reference", REFERENCE), ("reference_context", c_void_p), ("absolute", c_double),
        ("relative", c_double), ("ulp", c_double)]


STRUCTS = {
    "greta_runtime_options": RuntimeOptions, "greta_gemm_options": GemmOptions,
    "greta_quantized_gemm_options": QuantizedGemmOptions,
    "greta_quantized_grouped_gemm_options": QuantizedGroupedGemmOptions,
    "greta_quantized_experts_options": QuantizedExpertsOptions,
    "greta_rope_append_options": RopeAppendOptions, "greta_softmax_options": SoftmaxOptions,
    "greta_route_options": RouteOptions,
    "greta_attention_options": AttentionOptions,
    "greta_latent_attention_options": LatentAttentionOptions, "greta_norm_options": NormOptions,
    "greta_tune_operand": TuneOperand, "greta_tune_options": TuneOptions,
}

_I32, _SIZE, _TEXT = c_int32, c_size_t, c_char_p
_OUT = POINTER(HANDLE)  # receives a handle or a pointer
_TEXTS, _SIZES, _EXTENTS = POINTER(c_char_p), POINTER(c_size_t), POINTER(c_int64)


def _tensors(count: int, *rest: Any) -> tuple[Any, list[Any]]:
    """Returns the signature of an operation: its receiver, `count` tensors, and other arguments."""
    return _I32, [HANDLE] * (count + 1) + list(rest)


# Each function's result and arguments.
RUNTIME = {
    "greta_abi_version": (_I32, []),
    "greta_version": (_TEXT, []),
    "greta_last_error": (_TEXT, []),
    "greta_runtime_defaults": (RuntimeOptions, []),
    "greta_runtime_open": (_I32, [POINTER(RuntimeOptions), _OUT]),
    "greta_runtime_close": (None, [HANDLE]),
    "greta_runtime_device": (_I32, [HANDLE, _TEXTS, _TEXTS]),
    "greta_runtime_describe": (_I32, [HANDLE, _TEXTS]),
    "greta_runtime_problem": (_I32, [HANDLE, _TEXT, _TEXTS]),
    "greta_runtime_lookup": (_I32, [HANDLE, _TEXT, _TEXTS]),
    "greta_runtime_packing": (_I32, [HANDLE, _TEXTS, POINTER(c_double), _SIZE, _I32, _TEXTS]),
    "greta_runtime_use": (_I32, [HANDLE, _TEXT]),
    "greta_runtime_rules": (_I32, [HANDLE, _TEXTS]),
    "greta_runtime_prepare": (_I32, [HANDLE, _TEXT, _OUT]),
    "greta_operation_load": (_I32, [HANDLE, _TEXT, _TEXTS]),
    "greta_runtime_precompile": (_I32, [HANDLE, _TEXTS, _SIZE, c_uint32]),
    "greta_tensor_allocate": (_I32, [HANDLE, _I32, _EXTENTS, _SIZE, _I32, _OUT]),
    "greta_tensor_slice": (_I32, [HANDLE, _SIZE, c_int64, c_int64, _OUT]),
    "greta_tensor_reshape": (_I32, [HANDLE, _EXTENTS, _SIZE, _OUT]),
    "greta_tensor_release": (None, [HANDLE]),
    "greta_tensor_wrap": (_I32, [HANDLE, _I32, _EXTENTS, _EXTENTS, _SIZE, c_void_p, RELEASE,
                                 c_void_p, _OUT]),
    "greta_tensor_address": (_I32, [HANDLE, POINTER(c_uint64)]),
    "greta_tensor_describe": (_I32, [HANDLE, POINTER(c_int32), _EXTENTS, _SIZES, _SIZES]),
    "greta_tensor_host": (_I32, [HANDLE, _OUT]),
    "greta_tensor_upload": (_I32, [HANDLE, c_void_p, _SIZE]),
    "greta_tensor_download": (_I32, [HANDLE, c_void_p, _SIZE]),
    "greta_queue_open": (_I32, [HANDLE, _OUT]),
    "greta_queue_open_on": (_I32, [HANDLE, c_void_p, _OUT]),
    "greta_queue_stream": (_I32, [HANDLE, _OUT]),
    "greta_queue_close": (None, [HANDLE]),
    "greta_queue_operations": (HANDLE, [HANDLE]),
    "greta_queue_submit": (_I32, [HANDLE]),
    "greta_queue_run": (_I32, [HANDLE, HANDLE, POINTER(c_uint64), _SIZE]),
    "greta_queue_synchronize": (_I32, [HANDLE, c_double]),
    "greta_queue_replay": (_I32, [HANDLE, HANDLE]),
    "greta_pipeline_begin": (_I32, [HANDLE, _OUT]),
    "greta_pipeline_release": (None, [HANDLE]),
    "greta_pipeline_operations": (HANDLE, [HANDLE]),
    "greta_pipeline_temporary": (_I32, [HANDLE, _I32, _EXTENTS, _SIZE, _OUT]),
    "greta_pipeline_keep": (_I32, [HANDLE, HANDLE]),
    "greta_pipeline_label": (_I32, [HANDLE, _TEXT]),
    "greta_pipeline_finish": (_I32, [HANDLE, _I32, _OUT]),
    "greta_graph_release": (None, [HANDLE]),
    "greta_graph_explain": (_I32, [HANDLE, _TEXTS]),
    "greta_graph_memory": (_I32, [HANDLE, _SIZES, _SIZES]),
    "greta_gemm_defaults": (GemmOptions, []),
    "greta_quantized_gemm_defaults": (QuantizedGemmOptions, []),
    "greta_quantized_grouped_gemm_defaults": (QuantizedGroupedGemmOptions, []),
    "greta_quantized_experts_defaults": (QuantizedExpertsOptions, []),
    "greta_rope_append_defaults": (RopeAppendOptions, []),
    "greta_softmax_defaults": (SoftmaxOptions, []),
    "greta_route_defaults": (RouteOptions, []),
    "greta_attention_defaults": (AttentionOptions, []),
    "greta_latent_attention_defaults": (LatentAttentionOptions, []),
    "greta_norm_defaults": (NormOptions, []),
    "greta_gemm": _tensors(3, POINTER(GemmOptions)),
    "greta_grouped_gemm": _tensors(4, _I32, _I32),
    "greta_quantized_gemm": _tensors(5, _I32),
    "greta_quantized_gemm_fused": _tensors(3, POINTER(QuantizedGemmOptions)),
    "greta_quantized_grouped_gemm": _tensors(4, POINTER(QuantizedGroupedGemmOptions)),
    "greta_scaled_gemm": _tensors(5, _I32, _I32),
    "greta_mx_gemm": _tensors(5, _I32, _I32),
    "greta_scaled_grouped_gemm": _tensors(6, _I32, _I32, _I32),
    "greta_quantize": _tensors(6, _I32, _I32, c_float),
    "greta_quantize_layernorm": _tensors(5, _I32, _I32, c_float),
    "greta_add": _tensors(3),
    "greta_silu_mul": _tensors(3),
    "greta_silu_mul_packed": _tensors(2),
    "greta_gelu": _tensors(2, _I32),
    "greta_rope": _tensors(4, _I32),
    "greta_kv_update": _tensors(5),
    "greta_kv_update_pages": _tensors(6),
    "greta_rope_append": _tensors(9, POINTER(RopeAppendOptions)),
    "greta_embedding": _tensors(3),
    "greta_gather_columns": _tensors(3),
    "greta_argmax": _tensors(2),
    "greta_sample": _tensors(6),
    "greta_route": _tensors(3, POINTER(RouteOptions)),
    "greta_permute": _tensors(5, c_int64),
    "greta_unpermute": _tensors(4),
    "greta_experts": _tensors(6),
    "greta_quantized_experts": _tensors(6, POINTER(QuantizedExpertsOptions)),
    "greta_scaled_experts": _tensors(8, _I32, _I32),
    "greta_dequantize": _tensors(4, _I32),
    "greta_dequantize_panels": _tensors(4, _I32),
    "greta_repack_weights": _tensors(7, _I32, _I32),
    "greta_repack_to_panels": _tensors(7, _I32, _I32),
    "greta_attention": _tensors(5, POINTER(AttentionOptions)),
    "greta_latent_attention": _tensors(4, POINTER(LatentAttentionOptions)),
    "greta_attention_merge": _tensors(4),
    "greta_softmax": _tensors(2, POINTER(SoftmaxOptions)),
    "greta_layernorm": _tensors(2, POINTER(NormOptions)),
    "greta_rmsnorm": _tensors(2, POINTER(NormOptions)),
    "greta_add_rmsnorm": _tensors(4, POINTER(NormOptions)),
    "greta_layernorm_rmsnorm": _tensors(3, POINTER(NormOptions)),
    "greta_copy": _tensors(2),
    "greta_run": (_I32, [HANDLE, _TEXT, _OUT, _SIZE]),
}

TUNER = {
    "greta_tune_defaults": (TuneOptions, []),
    "greta_tune_abi_version": (_I32, []),
    "greta_tune_last_error": (_TEXT, []),
    "greta_tune_open": (_I32, [POINTER(TuneOptions), _TEXT, _OUT]),
    "greta_tune_problem": (_I32, [HANDLE, _TEXTS]),
    "greta_tune_run": (_I32, [HANDLE, _TEXTS]),
    "greta_tune_stop": (_I32, [HANDLE]),
    "greta_tune_close": (None, [HANDLE]),
}
