"""Part `calls` of measure_torch.py: what one call of an operation costs on the host."""

import time

CALLS, ROUNDS = 200, 9
CPU_CALLS = 10  # of the device hip-host, which waits for each


def each_us(m, run):
    """Returns the wall and the processor time of a call in microseconds: the least of rounds of many calls, which
    wait for nothing. Results are kept until a round's work is done."""
    wall, processor, calls = float("inf"), float("inf"), CALLS if m.cuda else CPU_CALLS
    for _ in range(ROUNDS):
        m.synchronize()
        begin, spent = time.perf_counter(), time.thread_time()
        kept = [run() for _ in range(calls)]
        wall = min(wall, (time.perf_counter() - begin) * 1e6 / calls)
        processor = min(processor, (time.thread_time() - spent) * 1e6 / calls)
        m.synchronize()
        del kept
    return wall, processor


def cases(m):
    """Yields the name, GRETA's function, that of torch.ops.greta, and torch's, on tensors so small that kernels take
    less time than calls."""
    torch, ops, functional = m.torch, m.torch.ops.greta, m.torch.nn.functional
    dtype = torch.float16 if m.cuda else torch.float32
    g = m.greta.torch
    x, w, b, r = (m.normal(*shape, dtype=dtype) for shape in ((1, 256), (256, 256), (256,), (1, 256)))
    q, k = m.normal(1, 4, 1, 64, dtype=dtype), m.normal(1, 4, 32, 64, dtype=dtype)
    lengths = torch.tensor([20], dtype=torch.int32, device=m.device)
    positions = torch.zeros(1, dtype=torch.int32, device=m.device)
    table = m.normal(4, 64, dtype=torch.float32)
    heads = q.transpose(1, 2)
    sdpa = getattr(functional, "scaled_dot_product_attention", None)
    rms = getattr(functional, "rms_norm", None)
    yield "linear", lambda: g.linear(x, w, b), lambda: ops.linear(x, w, b), lambda: functional.linear(x, w, b)
    yield ("linear with residual", lambda: g.linear(x, w, residual=r), lambda: ops.linear(x, w, None, r),
           lambda: functional.linear(x, w) + r)
    yield ("linear with norm and swiglu", lambda: g.linear(x, w, norm_weight=b, activation="swiglu"),
           lambda: ops.linear(x, w, None, None, b, "swiglu"), None)
    yield ("rms_norm", lambda: g.rms_norm(x, b), lambda: ops.rms_norm(x, b),
           rms and (lambda: rms(x, (256,), b, 1e-5)))
    yield "add_rms_norm", lambda: g.add_rms_norm(x, r, b), lambda: ops.add_rms_norm(x, r, b), None
    yield ("layer_norm", lambda: g.layer_norm(x, b, b), lambda: ops.layer_norm(x, b, b),
           lambda: functional.layer_norm(x, (256,), b, b))
    yield "softmax", lambda: g.softmax(x), lambda: ops.softmax(x), lambda: functional.softmax(x, -1)
    yield "silu_mul", lambda: g.silu_mul(x), lambda: ops.silu_mul(x), None
    yield "rope", lambda: g.rope(heads, positions, table), lambda: ops.rope(heads, positions, table), None
    yield ("attention", lambda: g.scaled_dot_product_attention(q, k, k, lengths=lengths),
           lambda: ops.attention(heads, k, k, lengths), sdpa and (lambda: sdpa(q, k, k)))


def runtime_cases(m, runtime):
    """Yields operations of a Runtime on GRETA's own tensors."""
    a, b, c = (runtime.empty((1, 256)) for _ in range(3))
    w, bias = runtime.empty((256, 256)), runtime.empty((256,))
    yield "Runtime.add", lambda: runtime.add(a, b, c)
    yield "Runtime.softmax", lambda: runtime.softmax(a, c)
    yield "Runtime.rmsnorm", lambda: runtime.rmsnorm(a, c, weight=bias)
    yield "Runtime.gemm", lambda: runtime.gemm(a, w, c, layout="nt", bias=bias)


def launch_of(m, run):
    """Returns the last part of a call: the call of the C interface on packed addresses."""
    from greta.torch.execution import Device
    seen, real = [], Device.launch
    Device.launch = lambda *arguments: (seen.append(arguments), real(*arguments))[1]
    try:
        kept = run()  # noqa: F841
    finally:
        Device.launch = real
    return lambda: (real(*seen[0]), kept)[1]


def calls_part(m):
    m.configure("greta")
    torch = m.torch
    with torch.no_grad():
        for name, direct, dispatched, theirs in cases(m):
            row = {"operation": name}
            for form, run in (("greta", direct), ("greta_op", dispatched), ("torch", theirs),
                              ("greta_launch", direct and launch_of(m, direct))):
                wall, processor = each_us(m, run) if run else (None, None)
                row |= {f"{form}_us": wall, f"{form}_cpu_us": processor}
            m.report.row("calls", **row, passed=True)
    runtime = m.greta.Runtime("hip:0" if m.cuda else "hip-host:0", cache=m.options.out / "cache")
    for name, run in runtime_cases(m, runtime):
        run()
        runtime.synchronize()
        wall, processor = each_us(m, run)
        runtime.synchronize()
        m.report.row("calls", operation=name, greta_us=wall, greta_cpu_us=processor, greta_op_us=None,
                     greta_op_cpu_us=None, torch_us=None, torch_cpu_us=None, greta_launch_us=None,
                     greta_launch_cpu_us=None, passed=True)
    runtime.close()
