"""Kernels that do what strangers' kernels do, and the plans that tools/study kernel_fusion makes for them. No PyTorch is needed here."""

import importlib.machinery
import importlib.util
import json
import pathlib
import subprocess
import tempfile

import kinds

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def _tool():
    loader = importlib.machinery.SourceFileLoader("kernel_fusion", str(ROOT / "tools" / "studies" / "kernel_fusion"))
    made = importlib.util.module_from_spec(importlib.util.spec_from_loader("kernel_fusion", loader))
    loader.exec_module(made)
    return made


def _described(folder, text, kernel):
    """(folder of its own, file of the kernel, what is in it)."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
    source, found = folder / "kernel.py", folder / "found.json"
    source.write_text(text)
    subprocess.run([kinds.BINARY, "compile", str(source), "--describe", "--kernel", kernel, "--json", str(found)], check=True, capture_output=True)
    return folder, source, json.loads(found.read_text())


def plan_of(folder, text, kernel):
    """(file of the kernel, file of the first plan that tools/study kernel_fusion tries)."""
    tool = _tool()
    folder, source, described = _described(folder, text, kernel)
    (folder / "plan.json").write_text(json.dumps(tool.plan_for(described, tool.Shape(True))[0]))
    return str(source), str(folder / "plan.json")


def job_of(folder, text, kernel):
    """A kernel fused as tools/study kernel_fusion does it: the job for original.py."""
    tool = _tool()
    folder, source, described = _described(folder, text, kernel)
    fused = tool.fuse(kinds.BINARY, source, kernel, described, folder, {}, tool.Shape(True))
    assert fused.why is None, fused.why
    return {"fused": str(fused.file), "source": str(source), "kernel": kernel, "folder": str(folder), "arrives": fused.arrives,
            "written": [one["name"] for one in described["operands"] if tool.makes(one)], "indices": sorted(tool.indices_of(described))}


HOST_MADE = """
import triton
import triton.language as tl


@triton.jit
def scaled(a_desc, b_desc, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    b_desc.store([m, n], a_desc.load([m, n]) * 2)
"""
CONSTANT = """
import os
import triton
import triton.language as tl


def chosen():
    return tl.exp if os.environ.get("NEVER_SET") is None else tl.log


function = chosen()


@triton.jit
def scaled(a_ptr, b_ptr, M, N, stride_am, stride_an, stride_bm, stride_bn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (m[:, None] < M) & (n[None, :] < N)
    a = tl.load(a_ptr + m[:, None] * stride_am + n[None, :] * stride_an, mask=mask)
    tl.store(b_ptr + m[:, None] * stride_bm + n[None, :] * stride_bn, function(a), mask=mask)
"""
# tools/study kernel_fusion takes what is called a stride for the slower axis, so that the chunks are columns here.
SQUARE = """
import triton
import triton.language as tl


@triton.jit
def squared(a_ptr, b_ptr, S, rows_a, stride_k, stride_bm, stride_bn, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    total = tl.zeros((BLOCK_M, BLOCK_K), dtype=tl.float32)
    for start in range(0, S, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        total += tl.load(a_ptr + m[:, None] * rows_a + k[None, :] * stride_k, mask=(m[:, None] < S) & (k[None, :] < S))
    tl.store(b_ptr + m[:, None] * stride_bm + tl.arange(0, BLOCK_K)[None, :] * stride_bn, total, mask=m[:, None] < S)
"""
# The second half of each row is there for tiles of the first half, too.
HALVES = """
import triton
import triton.language as tl


@triton.jit
def gated(a_ptr, b_ptr, M, N, stride_am, stride_an, stride_bm, stride_bn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (m[:, None] < M) & (n[None, :] < N)
    left = tl.load(a_ptr + m[:, None] * stride_am + n[None, :] * stride_an, mask=mask)
    right = tl.load(a_ptr + (m[:, None] + BLOCK_M) * stride_am + n[None, :] * stride_an, mask=(m[:, None] + BLOCK_M < M) & (n[None, :] < N), other=0.0)
    tl.store(b_ptr + m[:, None] * stride_bm + n[None, :] * stride_bn, left * right, mask=mask)
"""
# The second half of each row, which a tensor of one width does not have.
TWICE = HALVES.replace("(m[:, None] + BLOCK_M) * stride_am + n[None, :] * stride_an, mask=(m[:, None] + BLOCK_M < M) & (n[None, :] < N), other=0.0",
                       "m[:, None] * stride_am + (n[None, :] + N) * stride_an, mask=mask")
OUTSIDE = CONSTANT.replace("function(a)", "function(a) + tl.load(a_ptr + 100000000)")


def of_one_length(strides):
    """examples/kernels/attention.py with one parameter for the length of queries and of keys. strides: of heads and rows, as parameters
    (True) or as its sizes say (False); with a row of its own for each program's maximum."""
    text = pathlib.Path(kinds.KERNELS, "attention.py").read_text().replace("    Q_LEN,\n", "").replace("Q_LEN", "KV_LEN").replace("heads, q_len, ", "heads, ")
    if strides:
        return text
    for name in "qkvo":
        for axis, value in (("z", "HEADS * KV_LEN * HEAD_DIM"), ("h", "KV_LEN * HEAD_DIM"), ("m", "HEAD_DIM"), ("n", "HEAD_DIM")):
            text = text.replace(f"    stride_{name}{axis},\n", "").replace(f"stride_{name}{axis}", f"({value})")
    return text.replace("*strides, ", "").replace("    o_ptr,\n", "    o_ptr,\n    lse_ptr,\n").replace(
        "    acc = acc / l_i", "    tl.store(lse_ptr + pid_zh * KV_LEN + offs_m, m_i, mask=offs_m < KV_LEN)\n    acc = acc / l_i")


def with_bias():
    """examples/kernels/gemm.py with a bias that it adds to each row."""
    text = pathlib.Path(kinds.KERNELS, "gemm.py").read_text().replace("    c_ptr,\n", "    c_ptr,\n    bias_ptr,\n")
    return text.replace("    c_ptrs = ", "    acc += tl.load(bias_ptr + offs_n, mask=offs_n < N, other=0.0)[None, :]\n    c_ptrs = ")
