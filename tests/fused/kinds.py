"""Kernels and plans that are fused: examples/kernels with the templates whose tiles wait inside their kernel. No PyTorch is needed here."""

import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch"))  # behind: both have a module `mutation`
from plans import BINARY, hemiola, read, tries_all  # noqa: E402, F401

KERNELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "kernels")
PRODUCTS = {"gemm": (), "gemm_grouped": ("GROUP_M=2",), "gemm_persistent": ("GROUP_M=2",), "gemm_split_k": ("SPLIT_K=2",),
            "gemm_tma": ("GROUP_M=2",)}
ATTENTION = {"attention": ("CAUSAL=False", "scale=0.25")}
GROUPED_ATTENTION = {"attention_gqa": ("CAUSAL=True", "scale=0.25"), "attention_gqa_split_kv": ("CAUSAL=True", "scale=0.25")}  # heads that share keys, with a mask
SPLIT_ATTENTION = {"attention_split_kv": ("scale=0.25",)}  # programs that have some keys each
PRODUCT_PLANS = ("ag-gemm/swizzle", "ag-gemm/ring", "ag-gemm/double-ring", "ag-gemm/hierarchical", "gemm-rs/direct", "gemm-rs/ring",
                 "gemm-rs/hierarchical", "gemm-rs/collective", "gemm-ar/partitioned", "gemm-ar/hierarchical",
                 "a2a-gemm/direct")
# Plans of several launches, which are waves of one grid; behind the colon, parameters of the template.
LAUNCH_PLANS = ("ag-gemm/sequence:degree=2,steps=hetero", "ag-gemm/sequence:degree=2,products=unfused", "ag-gemm/shards:", "gemm-rs/sequence:degree=2",
                "gemm-rs/shards:", "gemm-ar/sequence:degree=2,axis=n", "ag-gemm/sequence:degree=2,axis=k")
# Products of experts whose tokens have a capacity.
EXPERTS = {"moe_capacity_gemm": ()}
CONSTANTS = {**PRODUCTS, **ATTENTION, **SPLIT_ATTENTION, **GROUPED_ATTENTION, **EXPERTS}
EXPERT_PLANS = ("moe/direct:", "moe/direct:transfer=pull")
LAUNCH_KERNELS = ("gemm", "gemm_persistent")
# Two products, which are launches of one text.
LAYER_PLANS = ("gemm-a2a-gemm/direct:waves=1", "gemm-a2a-gemm/direct:", "mlp/domino:")
MORE = (("gemm_tma", "ag-gemm/sequence:degree=2,steps=hetero"), ("gemm_split_k", "gemm-rs/sequence:degree=2"), ("gemm_grouped", "ag-gemm/serial:"),
        ("gemm_tma", "ag-gemm/sequence:degree=4,axis=k"), ("gemm_split_k", "ag-gemm/sequence:degree=2,axis=k"),
        ("gemm_grouped", "ag-gemm/sequence:degree=2,axis=k,steps=hetero"), ("gemm", "ag-gemm/sequence:degree=2,axis=k,products=unfused"),
        ("gemm_tma", "gemm-a2a-gemm/direct:waves=1"), ("gemm_persistent", "ag-gemm/sequence:degree=2,steps=hetero,placement=copy"))
ATTENTION_PLANS = ("ring-attention/ring", "ring-attention/swizzle", "double-ring-attention/ring", "ulysses-attention/direct:",
                   "ulysses-attention/direct:transfer=pull,waves=2")
SPLIT_PLANS = ("ulysses-attention/split-kv:", "ulysses-attention/split-kv:waves=2,order=counter-clockwise")
# A head of keys for each rank, and one for two of them.
GROUPED_PLANS = {"attention_gqa": ("ulysses-attention/direct:kv_heads=2,causal=yes", "ulysses-attention/direct:kv_heads=1,causal=yes,transfer=pull,waves=2"),
                 "attention_gqa_split_kv": ("ulysses-attention/split-kv:kv_heads=2,causal=yes,tile_kv=32", "ulysses-attention/split-kv:kv_heads=1,causal=yes,tile_kv=32")}


def kinds():
    """(kernel, its constants, template) of everything that is fused."""
    for kernels, plans in ((PRODUCTS, PRODUCT_PLANS), (ATTENTION, ATTENTION_PLANS), (SPLIT_ATTENTION, SPLIT_PLANS), (EXPERTS, EXPERT_PLANS)):
        for kernel, constants in kernels.items():
            for plan in plans:
                yield kernel, constants, plan
    for kernel, plans in GROUPED_PLANS.items():
        for plan in plans:
            yield kernel, GROUPED_ATTENTION[kernel], plan
    for kernel, plan in (*((kernel, plan) for kernel in LAUNCH_KERNELS for plan in LAUNCH_PLANS + LAYER_PLANS), *MORE):
        yield kernel, PRODUCTS[kernel], plan


def ranks_of(template):
    """Two levels take four."""
    return 4 if template.startswith("double") or template.endswith(("double-ring", "hierarchical")) else 2


def is_layer(template):
    """Whether it is of two products, whose sizes have other names."""
    return template.startswith(("gemm-a2a-gemm/", "mlp/"))


def make_plan(folder, template, *parameters, ranks=None, dtype="float16", sizes=()):
    """A small plan file."""
    ranks = ranks or ranks_of(template)
    template, _, more = template.partition(":")
    parameters = (*parameters, *filter(None, more.split(",")))
    path = os.path.join(folder, "-".join((*template.split("/"), *parameters, *sizes, f"{ranks}x{dtype}")) + ".json")
    if not sizes:
        sizes = (f"heads={2 * ranks if template.startswith('ulysses') else 2}", "sequence=128", "head=16") if "attention" in template else (f"m={32 * ranks}", "h=32", f"f={32 * ranks}") if is_layer(
            template) else ("rows=16", "experts=2", "n=32", "k=32") if template.startswith("moe/") else (f"m={32 * ranks}", f"n={32 * ranks}", f"k={32 * ranks}")
    given = [word for parameter in (*sizes, *parameters, f"dtype={dtype}") for word in ("--param", parameter)]
    if not os.path.exists(path):
        hemiola("plan", "make", template, "--ranks", str(ranks), *given, "-o", path)
    return path


def fused(folder, kernel, constants, plan, *more, name=None, block=16, block_k=16, source=None):
    """The file that the command line makes of a kernel (of examples/kernels, or of a file) and a plan."""
    path = os.path.join(folder, name or f"{kernel}-{os.path.basename(plan)[:-5]}.py")
    blocks = (f"BLOCK_M={block}", f"BLOCK_N={block}") + (() if "attention" in plan else (f"BLOCK_K={block_k}",))
    given = [word for constant in (*constants, *blocks) for word in ("--constexpr", constant)]
    if "placement=copy" in plan:  # nothing in the file says which row a copy is
        more = (*more, "--allow-partial")
    hemiola("compile", str(source or os.path.join(KERNELS, f"{kernel}.py")), "--plan", plan, *given, *more, "-o", path)
    return path


def works_of(t):
    """What the launches of a rank are told, one after the other, as setup() has made it."""
    return getattr(t, "works", None) or [getattr(t, name) for name in sorted(vars(t)) if name == "work" or name.startswith("work_")]
