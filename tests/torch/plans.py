"""Plans for the tests of what is compiled from them; no PyTorch is needed here."""

import os
import subprocess
import tempfile

BINARY = os.environ.get("HEMIOLA_BINARY", "hemiola")
RANKS = 4
SIZES = ["m=128", "n=64", "k=64", "tile_m=16", "tile_n=16", "tile_k=16"]


def hemiola(*arguments, code=0):
    """What the command line prints; of a failure what it says."""
    done = subprocess.run([BINARY, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout if code == 0 else done.stderr


def make_plan(folder, name, template, *parameters, dtype="float32", sizes=SIZES):
    """A plan file of a template with products."""
    path = os.path.join(folder, f"{name}.json")
    given = [word for parameter in [*sizes, f"dtype={dtype}", *parameters] for word in ("--param", parameter)]
    hemiola("plan", "make", template, "--ranks", str(RANKS), *given, "-o", path)
    return path


def make_collective(folder, name, template, *parameters, shape="32x6", dtype="float", axis=0):
    """A plan file of a collective, on a tensor."""
    path = os.path.join(folder, f"{name}.json")
    given = [word for parameter in parameters for word in ("--param", parameter)]
    hemiola("plan", "make", template, "--ranks", str(RANKS), "--shape", shape, "--dtype", dtype, "--axis", str(axis), *given, "-o", path)
    return path


def compiled(plan, *more):
    """The file that the command line makes of a plan."""
    path = plan.replace(".json", ".py")
    hemiola("compile", "--plan", plan, "-o", path, *more)
    return path


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def fused_kinds(family, columns, degrees, transfer=()):
    """FiCCO's eight: (name, template, parameters) by division, steps and products, at each degree."""
    for axis, division in (("m", "1D"), (columns, "2D")):
        for steps in ("uniform", "hetero"):
            for products in ("fused", "unfused"):
                for degree in degrees:
                    yield (f"{family} {division} {steps} {products} {degree}", f"{family}/sequence",
                           (f"axis={axis}", f"steps={steps}", f"products={products}", f"degree={degree}", *transfer))


def gather_kinds():
    """Of ag-gemm: serial, shards, and FiCCO's eight in n and 2n steps."""
    yield "ag-gemm serial", "ag-gemm/serial", ()
    yield "ag-gemm shards", "ag-gemm/shards", ()
    yield from fused_kinds("ag-gemm", "k", (RANKS, 2 * RANKS))


def tries_all():
    """Whether tools/test long runs, which has time."""
    return os.environ.get("HEMIOLA_LONG_TESTS", "0") not in ("", "0")


def other_kinds():
    """The mirrors, by copies beside each other and on several streams too. A usual run pushes 1D and pulls 2D; a long one does both."""
    for family, columns in (("gemm-rs", "n"), ("gemm-ar", "n"), ("dispatch-gemm", "k"), ("gemm-combine", "n")):
        for transfer in ("push", "pull"):
            way = (f"transfer={transfer}",)
            kinds = [kind for kind in fused_kinds(family, columns, (RANKS,), way)
                     if tries_all() or (transfer == "push") == ("1D" in kind[0])]
            if transfer == "push" or tries_all():
                kinds.append((f"{family} serial", f"{family}/serial", way))
                kinds.append((f"{family} by copies", f"{family}/sequence", ("placement=copy", *way)))
            if transfer == "pull" or tries_all():
                kinds.append((f"{family} on streams", f"{family}/sequence", ("products=unfused", "streams=2", *way)))
                if family != "gemm-ar":
                    kinds.append((f"{family} shards", f"{family}/shards", way))
            yield from ((f"{name} {transfer}", template, parameters) for name, template, parameters in kinds)
    yield "ag-gemm by copies pull", "ag-gemm/sequence", ("placement=copy", "steps=hetero", "transfer=pull")
    yield "ag-gemm push", "ag-gemm/sequence", ("transfer=push",)
    yield "ag-gemm shards push", "ag-gemm/shards", ("transfer=push",)
    yield "ag-gemm on streams", "ag-gemm/sequence", ("products=unfused", "streams=2")


# Of which every wait is taken away (mutants_test).
MUTATED = {name: (template, parameters) for name, template, parameters in
           [*(kind for kind in gather_kinds() if not kind[0].endswith(f" {2 * RANKS}")),
            ("ag-gemm push", "ag-gemm/sequence", ("transfer=push",)),
            ("gemm-rs 1D uniform fused 4 push", "gemm-rs/sequence", ("transfer=push",)),
            ("gemm-rs shards pull", "gemm-rs/shards", ("transfer=pull",)),
            ("gemm-ar 1D uniform fused 4 push", "gemm-ar/sequence", ("transfer=push",)),
            ("dispatch-gemm 1D hetero fused 4 push", "dispatch-gemm/sequence", ("steps=hetero", "transfer=push")),
            ("gemm-combine 1D uniform fused 4 pull", "gemm-combine/sequence", ("transfer=pull",))]}


COLLECTIVES = ("all-gather/ring", "all-gather/direct", "all-gather/double-ring", "all-reduce/ring", "all-reduce/two-shot",
               "all-reduce/one-shot", "all-reduce/halving-doubling", "all-reduce/double-binary-tree", "all-reduce/partitioned",
               "reduce-scatter/ring", "reduce-scatter/collective", "all-to-all/direct", "broadcast/tree")


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix="hemiola-torch-")
