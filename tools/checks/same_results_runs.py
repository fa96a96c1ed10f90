"""The runs of tools/same_results: every built-in, the examples, the real files, replays, options, checks, and refusals.

A list that is generated where it can be, in an order that depends on nothing but the templates of the binary (`plan
show`) and the files of the project and of INPUTS. Sizes are small: all of it takes some minutes of CPU time (tools/same_results
prints them), so that it can be run often. A new run is one line of a table below.
"""
import importlib.machinery
import importlib.util
import pathlib
import re
import shlex
import subprocess

INPUTS = "../shared/inputs"  # the real files beside the project (docs/inputs.md)

# Runs whose programs the general lowering makes (docs/plans.md, "How plans become programs"), of plans in which ranks do the
# same up to a rotation: a regular expression that is found in the command, and what they are. Once such a plan is lowered to
# one code for all ranks its buffers turn with the rank, so addresses change: times within 1 % are enough.
SYMMETRIC = [
    (r"\b(ag-gemm|gemm-rs|gemm-ar|a2a-gemm|ring-attention|double-ring-attention)/", "plans that compute"),
    (r"\b(all-gather/(double-ring|hierarchical)|all-to-all/hierarchical|all-reduce/halving-doubling)",
     "transfers within groups of ranks and between them"),
    (r"/(partitioned|collective|nvls)\b", "collectives of a library inside a plan, and the switch's multicast"),
    (r"/(one-shot|two-shot|direct|swizzle|waves) .*(\w-\w+:\d+|clos:)", "exchanges over NICs, lowered transfer by transfer"),
    (r"\b(realization|sync)=", "plans that are not lowered as their own shape"),
    (r"/swizzle .*\bsplit=", "exchanges in parts, lowered transfer by transfer"),
    (r"\{folder\}/plan\.json", "plans that were written to a file, lifted ones too"),
    (r"/synth\b|\brun (all-reduce|all-gather|reduce-scatter|all-to-all) ", "the fastest of several plans, which may be one of these"),
]


class Run:
    """Commands that follow each other, without the binary's name; the last one writes the JSON that is compared.

    A command is a list of words; `sh FILE ...` is a script that calls $HEMIOLA. `{folder}` is the folder of the run.
    """

    def __init__(self, kind, commands):
        self.kind, self.commands = kind, commands
        self.name = " && ".join(shlex.join(command) for command in commands)
        self.needs_inputs = INPUTS in self.name


def tool(root, name):
    """Another program of tools/ as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(root / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def lines(kind, table):
    """A run for each line of the table; ';' stands between commands."""
    rows = [row.strip() for row in table.strip().splitlines()]
    return [Run(kind, [shlex.split(command) for command in row.split(";")]) for row in rows if row and row[0] != "#"]


# Machines with NVSwitches, a full mesh, NICs, and routes over other GPUs; and how they are simulated.
FOR_CHUNKS = [
    ("--machine dgx-h100 --size 64KiB", ""),
    ("--machine dgx-a100 --ranks 4 --size 1MiB", ""),
    ("--machine mi300x-8 --size 16KiB", "--engine reference"),
    ("--machine dgx-h100:2 --ranks 0-3,8-11 --size 64KiB", ""),
    ("--machine dgx-h100:2 --size 16KiB", "--engine fluid"),
    ("--machine torus:2x4 --size 40000B", "--no-check"),
]
FOR_COMPUTE = [  # ranks, for which the sizes of products are chosen, and the same
    (4, "--machine switch:4", ""),
    (8, "--machine dgx-h100", "--threads 2"),
    (4, "--machine mi300x-8 --ranks 4", "--no-check --no-fold"),
    (8, "--machine dgx-h100", "--engine fluid"),
    (4, "--machine dgx-h100:2 --ranks 0,1,8,9", ""),
]


def templates(binary):
    """(name, whether its sizes are parameters) of all templates that the binary knows."""
    shown = subprocess.run([binary, "plan", "show"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    names = re.findall(r"^(\S+/\S+): ", shown.stdout, re.MULTILINE)
    if shown.returncode != 0 or not names:
        raise ValueError(f"'plan show' lists no templates: {shown.stdout.strip()[:200]}")
    return [(name, bool(re.search("gemm|attention", name))) for name in names]


def template_runs(root, names):
    parameters = tool(root, "studies/templates").parameters  # of products and attention, small
    runs = []
    for name, computes in names:
        if computes:
            cases = [(" ".join(parameters(name, ranks)) + " " + machine, more) for ranks, machine, more in FOR_COMPUTE]
        else:
            cases = [(machine + " --round-size", more) for machine, more in FOR_CHUNKS]
        runs += [Run("compute" if computes else "template", [shlex.split(f"run {name} {words} {more}")]) for words, more in cases]
    return runs


def check_runs(root, names):
    """The verdict on every template; on those of chunks without a machine, so at several sizes."""
    parameters = tool(root, "studies/templates").parameters
    return [Run("check", [["check", name, "--ranks", "4", "--machine", "dgx-h100", *parameters(name, 4),
                           *([] if computes else ["--size", "64KiB", "--round-size"])]]) for name, computes in names]


KERNELS = [
    "all-reduce/vllm", "all-reduce/vllm-one-stage", "all-reduce/vllm-two-stage", "all-reduce/trtllm",
    "all-reduce/trtllm-one-shot", "all-reduce/trtllm-two-shot", "all-reduce/nccl", "all-gather/nccl", "reduce-scatter/nccl",
    "broadcast/nccl", "reduce/nccl", "all-to-all/nccl", "auto/nccl", "auto/custom-allreduce"]
FOR_KERNELS = [
    "--machine dgx-h100 --size 64KiB",
    "--machine dgx-a100 --ranks 4 --size 512KiB --engine reference",
    "--machine mi300x-8 --size 256KiB",
    "--machine dgx-h100:2 --size 64KiB --engine fluid",
]
PAIRS = ["send-recv/mscclpp-put", "send-recv/mscclpp-get", "send-recv/mscclpp-packets", "send-recv/mscclpp-port"]

# Sizes and parameters of the kernels that are no collectives (docs/kernels.md, docs/fused.md).
OTHER_KERNELS = """
run micro/pointer-chase --machine dgx-h100 --ranks 1 --size 64KiB
run micro/pointer-chase --machine dgx-a100 --size 64KiB --param memory=peer --engine reference
run micro/copy --machine mi300x-8 --size 256KiB --param ways=all --param blocks=4
run micro/copy --machine dgx-h100 --ranks 2 --size 1MiB --param engine=dma --param direction=read
run micro/copy --machine dgx-h100:2 --ranks 0,8 --size 1MiB --param engine=proxy
run micro/ping-pong --machine dgx-h100 --ranks 2 --param memory=peer --param release=1
run micro/hand-over --machine mi300x-8 --ranks 1 --param blocks=4
run micro/fence --machine dgx-a100 --ranks 1 --param rounds=16
run micro/barrier --machine dgx-h100 --ranks 1 --param rounds=8
run micro/launch --machine dgx-h100 --ranks 1 --warmup 1 --iterations 3 --launch stream
run micro/launch --machine hgx-h200 --ranks 1 --warmup 1 --iterations 3 --launch graph
run gemv-ar/fused --machine dgx-h100 --param m=1024 --param k=1024
run gemv-ar/fused --machine switch:4 --param m=512 --param k=1024 --param order=spread --engine reference
run gemv-ar/fused --machine switch:4 --param m=512 --param k=1024 --param skew=5us --param late=random --param seed=3
run gemv-ar/unfused --machine dgx-h100 --param m=1024 --param k=1024
run gemv-ar/unfused --machine mi300x-8 --param m=1024 --param k=1024 --engine fluid
run gemm-a2a/fused --machine dgx-h100 --ranks 4 --param m=512 --param n=256 --param k=256 --no-check
run gemm-a2a/fused --machine switch:4 --param m=512 --param n=256 --param k=256 --engine fluid
run gemm-a2a/unfused --machine dgx-h100 --ranks 4 --param m=512 --param n=256 --param k=256 --no-check
run embedding-a2a/fused --machine mi300x-8 --ranks 4 --param rows=512 --param batch=128 --param tables=4
run embedding-a2a/unfused --machine mi300x-8 --ranks 4 --param rows=512 --param batch=128 --param tables=4
"""


def kernel_runs():
    runs = [Run("kernel", [shlex.split(f"run {name} {words}")]) for name in KERNELS for words in FOR_KERNELS]
    runs += [Run("kernel", [shlex.split(f"run {name} --machine dgx-h100 --ranks 2 --size 64KiB")]) for name in PAIRS]
    return runs + lines("kernel", OTHER_KERNELS)


# Parameters of built-ins (docs/plans.md): protocols, realizations, who waits for whom, shapes of rings and exchanges.
PARAMETERS = """
run all-reduce/ring --machine dgx-h100 --size 1MiB --param protocol=ll
run all-reduce/ring --machine dgx-h100 --size 1MiB --param protocol=ll128 --param channels=4
run all-reduce/ring --machine dgx-h100 --size 1MiB --param in_place=1 --param piece=64KiB
run all-reduce/ring --machine dgx1-v100 --size 1MiB
run all-reduce/ring --machine dgx1-v100 --size 1MiB --param rings=identity
run all-reduce/ring --machine torus:2x4 --size 1MiB --param protocol=ll
run all-reduce/ring --machine dgx-h100 --ranks 4 --size 64KiB --param sync=channels
run all-reduce/ring --machine dgx-h100 --ranks 4 --size 64KiB --param sync=connections
run all-reduce/ring --machine dgx-h100 --ranks 4 --size 256KiB --param realization=bulk
run all-reduce/two-shot --machine dgx-h100 --size 256KiB --param protocol=ll
run all-reduce/two-shot --machine dgx-h100 --size 256KiB --param gather=pull --param workgroups=8
run all-reduce/two-shot --machine mi300x-8 --size 256KiB --param transfer=push --param barrier=0
run all-reduce/two-shot --machine dgx-h100 --ranks 4 --size 256KiB --param sync=channels
run all-reduce/one-shot --machine dgx-h100 --size 64KiB --param protocol=ll
run all-reduce/one-shot --machine dgx-h100 --size 64KiB --param transfer=push --param threads=256
run all-reduce/double-binary-tree --machine dgx-h100:2 --ranks 0-3,8-11 --size 64KiB --param split=2 --param trees=identity
run all-reduce/double-binary-tree --machine dgx-h100 --ranks 6 --size 96KiB --param protocol=ll
run all-reduce/halving-doubling --machine dgx-h100 --ranks 6 --size 96KiB --param workgroups=4
run all-reduce/nvls --machine dgx-a100 --size 256KiB --param realization=load-store
run all-reduce/nvls --machine hgx-b200 --size 256KiB --param split=2
run all-reduce/partitioned --machine dgx-h100 --size 256KiB --param split=4
run all-gather/direct --machine dgx-h100 --size 1MiB --param realization=copy-engine
run all-gather/direct --machine dgx-h100 --size 1MiB --param transfer=pull --param order=counter-clockwise
run all-gather/direct --machine mi355x-8 --size 1MiB --param realization=bulk
run all-gather/swizzle --machine gb200-nvl72 --ranks 16 --size 1MiB --param split=4
run all-gather/hierarchical --machine dgx-h100:4 --ranks 0-3,8-11,16-19,24-27 --size 64KiB --param inner=4
run all-gather/double-ring --machine switch:8 --size 256KiB --param inner=2 --param split=2
run all-to-all/waves --machine dgx-h100 --size 1MiB --param waves=4 --param workgroups=16
run all-to-all/uneven --machine dgx-h100 --size 256KiB --round-size --param seed=7 --param mean=3
run broadcast/ring --machine ring:6 --size 96KiB --param root=2
run broadcast/tree --machine mesh:2x3 --size 96KiB --param root=5 --param split=2
run reduce/ring --machine switch:8 --size 64KiB --param root=7 --param protocol=ll128
run reduce/tree --machine clos:2x2x4 --size 64KiB
run all-gather/synth --machine mesh:2x3 --size 96KiB --param split=2
run all-reduce/synth --machine torus:2x4 --size 64KiB --param judge=estimate
run reduce-scatter/synth --machine dgx1-v100 --size 64KiB --param judge=estimate --param seed=2
run all-to-all/synth --machine ring:4 --size 64KiB --param transfer=push
run ag-gemm/ring --machine switch:4 --param m=512 --param n=256 --param k=128 --param compute_workgroups=16 --param stages=2
run gemm-rs/direct --machine dgx-h100 --ranks 4 --param m=512 --param n=256 --param k=256 --param realization=co-located
run ag-gemm/swizzle --machine dgx-h100 --ranks 4 --param m=512 --param n=256 --param k=256 --param realization=copy-engine
run a2a-gemm/direct --machine dgx-h100 --ranks 4 --param m=512 --param n=256 --param k=256 --param waves=4
run all-reduce/nccl --machine dgx-h100 --size 1MiB --param algorithm=ring --param protocol=simple --param channels=4
run all-reduce/nccl --machine dgx-h100 --size 1MiB --param algorithm=nvls
run all-reduce/nccl --machine dgx-h100:2 --size 64KiB --param algorithm=tree
run all-gather/nccl --machine dgx-h100 --size 256KiB --param protocol=ll128
"""

# Options of 'run': machines, sizes, types, settings, launches, repetitions, starts, threads, engines.
OPTIONS = """
run all-reduce --machine dgx-h100 --ranks 4 --size 16KiB
run broadcast --machine switch:4 --size 16KiB,256KiB
run all-reduce/ring --machine dgx-h100 --size 1KiB:1MiB:x4
run all-reduce/ring --machine dgx-h100 --size 1MiB --threads 2
run all-reduce/ring --machine dgx-h100 --ranks 4 --size 64KiB --no-fold --threads 2
run all-reduce/ring --machine dgx-h100 --ranks 4 --size 64KiB --engine reference
run all-reduce/ring --machine dgx-h100 --ranks 4 --size 64KiB --engine reference --no-fold
run all-reduce/ring --machine switch:64 --size 1MiB --engine fluid
run all-reduce/ring --machine switch:64 --size 1MiB --no-check
run all-reduce/ring --machine astra3:8 --size 256KiB
run all-reduce/ring --machine clos:2x2x4 --size 64KiB
run all-reduce/ring --machine gb200-nvl72 --ranks 12 --size 96KiB
run all-reduce/ring --machine hgx-b200 --size 256KiB --gpu b200
run all-reduce/ring --machine ring:4 --gpu ideal --size 64KiB --engine fluid
run all-reduce/ring --machine mesh:2x4 --gpu mi300x --size 64KiB
run all-reduce/ring --machine dgx-h100 --ranks 7,5,3,1 --size 64KiB
run all-reduce/ring --machine dgx-h100 --size 1000001B --round-size
run all-reduce/ring --machine dgx-h100 --size 64KiB --set gpu.l2.size=1MiB,25MiB --set link.*.latency=400ns,1us
run all-reduce/ring --machine dgx-h100 --size 1MiB --set link.nvlink4.bandwidth=12.5GB/s --no-fold
run all-reduce/ring --machine dgx-h100:2 --size 64KiB --set nic.mtu=1KiB --set switch.latency=1us
run all-reduce/two-shot --machine dgx-h100 --size 256KiB --set switch.queue=16 --set link.*.credits=32
run all-reduce/two-shot --machine dgx-h100 --ranks 4 --size 64KiB --set link.*.arbitration=control_first --engine reference
run all-reduce/two-shot --machine dgx-h100 --size 64KiB --dtype half
run all-reduce/two-shot --machine dgx-h100 --size 64KiB --dtype bfloat16 --op max
run all-reduce/two-shot --machine mi300x-8 --size 64KiB --dtype double --op prod
run all-reduce/one-shot --machine dgx-h100 --size 64KiB --dtype int32 --op min
run reduce-scatter/direct --machine dgx-h100 --size 64KiB --dtype uint8 --op sum
run all-reduce/one-shot --machine dgx-h100 --size 64KiB --warmup 1 --iterations 2
run all-reduce/one-shot --machine dgx-h100 --size 64KiB --warmup 2 --iterations 3 --launch graph
run all-reduce/nccl --machine dgx-a100 --size 64KiB --warmup 1 --iterations 2 --launch graph
run all-reduce/nccl --machine dgx-a100 --ranks 4 --size 64KiB --warmup 1 --iterations 2 --one-host
run all-reduce/vllm --machine dgx-h100 --ranks 4 --size 64KiB --warmup 1 --iterations 2 --engine reference
run all-reduce/one-shot --machine dgx-h100 --size 64KiB --skew 0ns,5us,1us
run all-reduce/two-shot --machine dgx-h100 --ranks 4 --size 64KiB --skew 2us --engine reference
run all-to-all/direct --machine dgx-h100 --size 256KiB --skew 0ns,3us --engine fluid
run all-to-all/direct --machine mi300x-8 --size 1MiB --threads 2 --no-fold
run all-reduce/two-shot --machine mi300x-8 --ranks 4 --size 64KiB --set gpu.sync.wait=spin,backoff,monitor,syncmon
run all-to-all/waves --machine dgx-h100:2 --size 64KiB --threads 2 --no-check
run all-gather/ring --machine dgx-h100:2 --size 64KiB --launch graph
run all-gather/ring --machine dgx-h100:8 --size 1MiB --engine fluid
machine convert dgx-h100 -o {folder}/m.yaml --quiet ; run all-reduce/ring --machine {folder}/m.yaml --size 64KiB
machine convert switch:4 -o {folder}/m.yaml --quiet ; run all-gather/direct --machine {folder}/m.yaml --gpu a100 --size 64KiB
"""

# Recordings that are replayed (docs/replay.md): ways to wait, answers, ports, several ranks, delays, traffic, trace importers.
REPLAYED = "{folder}/rank.csv"
REPLAYS = [  # program, machine and size of the recording; options of the recording; options of the replay
    ("all-reduce/ring --machine dgx-h100 --size 64KiB", "", ""),
    ("all-reduce/ring --machine dgx-h100 --size 64KiB", "", "--set gpu.sync.wait=spin,backoff,monitor,syncmon"),
    ("all-reduce/ring --machine dgx-h100 --size 64KiB", "", "--delay 7=5us"),
    ("all-reduce/ring --machine dgx-h100 --size 64KiB", "--record-at port", "--answers live"),
    ("all-reduce/ring --machine dgx-h100 --size 64KiB", "", "--mode fabric --set link.nvlink4.latency=2us"),
    ("all-reduce/ring --machine dgx-h100 --size 64KiB", "--record-rank 0,3", ""),
    ("all-reduce/ring --machine dgx-h100:2 --size 64KiB", "--record-rank 8", ""),
    ("all-reduce/one-shot --machine dgx-a100 --size 64KiB", "", "--answers recorded"),
    ("all-reduce/one-shot --machine dgx-a100 --size 64KiB", "", "--answers live --table polled"),
    ("all-reduce/two-shot --machine dgx-h100 --size 64KiB", "--record-at port", ""),
    ("all-reduce/two-shot --machine dgx-h100 --size 64KiB", "", "--set gpu.sync.wait=monitor"),
    ("all-reduce/two-shot --machine dgx-h100 --size 64KiB --param protocol=ll", "--record-rank 2", "--delay 1,4-6=2us"),
    ("all-reduce/nccl --machine dgx-h100 --size 64KiB", "", ""),
    ("all-reduce/nccl --machine mi300x-8 --size 256KiB", "--record-rank 5", "--set gpu.sync.wait=spin,syncmon"),
    ("all-reduce/nvls --machine dgx-h100 --size 64KiB", "", ""),
    ("all-reduce/nvls --machine dgx-h100 --size 64KiB", "", "--set gpu.sync.wait=spin,monitor"),
    ("gemv-ar/fused --machine switch:16 --param k=16384 --param m=256", "--no-check", ""),
    ("gemv-ar/fused --machine switch:4 --param m=512 --param k=1024", "--skew 0ns,4us", "--set gpu.sync.wait=spin,backoff,monitor,syncmon"),
    ("all-to-all/direct --machine mi300x-8 --size 64KiB", "--record-at port", "--delay all=1us"),
    ("ag-gemm/ring --machine switch:4 --param m=128 --param n=64 --param k=64", "--no-check", ""),
]
OTHER_REPLAYS = """
replay --describe all-reduce/nccl --machine dgx-h100 --size 64KiB --rank 2 --output {folder}/rows.csv --quiet ; replay {folder}/rows.csv --machine dgx-h100 --program all-reduce/nccl --size 64KiB --rank 2
replay --describe all-reduce/one-shot --machine mi300x-8 --size 16KiB --output {folder}/rows.csv --quiet ; replay {folder}/rows.csv --machine mi300x-8 --program all-reduce/one-shot --size 16KiB --mode fabric
"""


def replay_runs(root):
    runs = []
    for program, recording, replaying in REPLAYS:
        name, _, words = program.partition(" ")
        runs += lines("replay", f"run {program} {recording} --record {REPLAYED} --quiet ;"
                                f"replay {REPLAYED} --program {name} {words} {replaying}")
    kineto = f"{INPUTS}/kineto"
    traces = f"replay {kineto}/sampled_rank-0.json.gz {kineto}/sampled_rank-1.json.gz --partial --machine switch:2 --rank 0"
    return runs + lines("replay", OTHER_REPLAYS + traces + "\n" + traces + " --delay 1=1ms")


# Examples that are scripts with parts too long for here, and the part that is taken.
PARTS = {"astra3_get_put": ["reduce-scatter"]}


def example_runs(root):
    """Every example as its script runs it; plans of examples also over nodes, and by the other engines."""
    runs = [Run("example", [["sh", f"examples/{script.parent.name}/run.sh", *PARTS.get(script.parent.name, [])]])
            for script in sorted((root / "examples").glob("*/run.sh"))]
    for file in sorted([*(root / "examples").glob("*/plan.json"), *(root / "examples").glob("*/*.xml")]):
        name = file.relative_to(root)
        runs += lines("example", f"""
            check {name}
            run {name} --machine dgx-a100 --size 64KiB --engine reference
            run {name} --machine mi300x-8 --size 256KiB --engine fluid""")
    return runs


def input_runs(root):
    """Every real program on the machine that it was written for; every second real machine with a ring on it."""
    folder = root / INPUTS
    machine_of = tool(root, "studies/inputs").machine_of
    files = {kind: [file.name for file in sorted((folder / kind).glob("*"))]
             for kind in ("mscclpp_json", "msccl_xml", "infragraph", "nccl_topo")}
    runs = []
    for kind in ("mscclpp_json", "msccl_xml"):
        for number, file in enumerate(files[kind]):
            long = file.startswith("rccl_all-reduce-ring")  # 16 ranks, thousands of steps: a proof takes 12 s
            how = "--size 16KiB " + ["", "--engine fluid", "--threads 2"][number % 3] if not long else "--size 1KiB --no-check"
            on = "--machine " + " ".join(machine_of(file))
            runs += lines("input", f"run {INPUTS}/{kind}/{file} {on} --round-size {how}")
            if number % 3 == 0 and not long:
                runs += lines("input", f"check {INPUTS}/{kind}/{file} --size 1KiB --round-size")
    for kind in ("infragraph", "nccl_topo"):
        for number, file in enumerate(files[kind][::2]):
            program = ["all-reduce/ring", "all-gather/direct", "broadcast/tree"][number % 3]
            runs += lines("input", f"run {program} --machine {INPUTS}/{kind}/{file} --size 64KiB --round-size --no-check")
    return runs


CHECKS = """
check all-reduce/ring --machine dgx-h100 --size 16MiB --param protocol=ll
check all-reduce/ring --ranks 8
check all-reduce/ring --ranks 4 --size 1KiB:1MiB:x32 --calls 2
check all-reduce/two-shot --ranks 8 --param protocol=ll
check all-reduce/trtllm-one-shot --machine dgx-h100 --size 64KiB
check all-reduce/nccl --machine dgx-h100:2 --size 64KiB
check all-to-all/nccl --machine mi300x-8 --size 64KiB
check auto/custom-allreduce --machine dgx-h100 --ranks 4 --size 1MiB
check gemv-ar/fused --ranks 4 --param m=256 --param k=256
check gemm-a2a/fused --ranks 4 --param m=512 --param n=256 --param k=256
check embedding-a2a/fused --ranks 4 --param rows=64 --param batch=64
check micro/ping-pong --machine dgx-h100 --ranks 2
check send-recv/mscclpp-port --machine dgx-h100 --ranks 2 --size 64KiB
check all-gather/direct --machine dgx-h100 --size 64KiB --param realization=copy-engine
check all-reduce/ring --ranks 4 --size 64KiB --data --rounds 2 --seed 7
check broadcast --machine switch:4 --size 64KiB
"""

SWEEPS = """
sweep examples/sweep_algorithms/sweep.yaml --output {folder}/points.sqlite
sweep examples/sweep_algorithms/sweep.yaml --output {folder}/points.sqlite --threads 2 --shard 2/3
validate --only micro-
validate --only h100-vllm --max-size 64KiB
validate --only a100 --max-size 16KiB --engine fluid
plan make all-gather/direct --ranks 4 --param transfer=pull -o {folder}/plan.json --quiet ; run {folder}/plan.json --machine switch:4 --size 64KiB
plan make all-reduce/ring --ranks 4 --param channels=2 --to msccl -o {folder}/program.xml --quiet ; run {folder}/program.xml --machine switch:4 --size 64KiB
plan make all-reduce/two-shot --ranks 4 --to mscclpp -o {folder}/program.json --quiet ; run {folder}/program.json --machine switch:4 --size 64KiB
plan convert examples/allreduce_ring_4g/ring.xml --to plan -o {folder}/plan.json --quiet ; run {folder}/plan.json --machine dgx-h100 --size 64KiB
plan convert examples/allreduce_push_2g/plan.json --to plan -o {folder}/plan.json --quiet ; check {folder}/plan.json
run all-reduce/ring --machine switch:4 --size 64KiB --json {folder}/a.json --quiet ; run all-reduce/two-shot --machine switch:4 --size 64KiB --json {folder}/b.json --quiet ; diff {folder}/a.json {folder}/b.json
"""

# What is refused, is wrong or waits for ever: exit code and message stay, too. More are in the lists above.
REFUSED = """
run all-reduce/rnig --machine dgx-h100 --size 64KiB
run all-reduce/ring --machine dgx-h10 --size 64KiB
run all-reduce/ring --machine dgx-h100 --size 1000001B
run all-reduce/ring --machine dgx-h100 --size 64KiB --param chanels=2
run all-reduce/ring --machine dgx-h100 --size 64KiB --set gpu.l2.sise=1MiB
run all-reduce/ring --machine dgx-h100 --size 64KiB --dtype flaot
run all-reduce/ring --machine switch:4 --size 64KiB --skew 0ns,0ns,0ns,0ns,5us
run all-reduce/nvls --machine dgx-a100 --size 64KiB
run gemv-ar/fused --machine dgx-h100:2 --param m=1024 --param k=1024
run ag-gemm/ring --machine switch:4 --param m=130 --param n=64 --param k=64
run all-reduce/ring --machine examples/sweep_algorithms/sweep.yaml --size 64KiB
run examples/faulty_wrong_sum/plan.json --machine dgx-h100 --size 1KiB
run examples/faulty_missing_signal/plan.json --machine dgx-h100 --size 1KiB --no-check
run examples/faulty_missing_signal/plan.json --machine dgx-h100 --size 1KiB --no-check --engine fluid
run all-reduce/two-shot --machine switch:4 --size 64KiB --set gpu.cu.count=1 --param workgroups=64 --param sync=channels
run all-gather/direct --machine dgx-h100 --size 64KiB --param realization=copy-engine --record {folder}/rank.csv
check examples/sweep_algorithms/sweep.yaml
replay examples/sweep_algorithms/sweep.yaml --machine switch:4 --program all-reduce/ring --size 64KiB
"""


def runs_of(binary, root):
    """All runs, in an order that is always the same. ValueError: the binary says no templates; a run that is there twice."""
    names = templates(binary)
    runs = (template_runs(root, names) + kernel_runs() + lines("parameter", PARAMETERS) + lines("option", OPTIONS)
            + replay_runs(root) + example_runs(root) + input_runs(root) + check_runs(root, names) + lines("check", CHECKS)
            + lines("sweep", SWEEPS) + lines("refused", REFUSED))
    seen = set()
    for run in runs:
        if run.name in seen:
            raise ValueError(f"a run is in the list twice: {run.name}")
        seen.add(run.name)
    return runs
