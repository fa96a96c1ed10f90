"""From what tools/invariants draws its cells: machines, programs, sizes, and files that it writes itself. A cell is the tuple of words after `hemiola`."""
import dataclasses
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
INPUTS = ROOT.parent / "shared" / "inputs"

KIB, MIB = 1 << 10, 1 << 20
SIZES = [8 * KIB << power for power in range(20)]  # 8 KiB to 4 GiB
NODES = (1, 2, 4, 8, 16, 32)
BUILDERS = ("switch:4", "switch:8", "switch:16", "ring:4", "ring:8", "clos:2x2x4", "clos:4x4x4", "mesh:2x4", "mesh:4x4", "torus:2x4", "torus:4x4",
            "astra3:8")
MODELS = ("a100", "b200", "h100", "mi300x", "v100")
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce")
PROTOCOLS = ("simple", "ll", "ll128")


def switch_of_links(gpus, links, bandwidth, model="h100"):
    """InfraGraph: GPUs on one switch by so many links each, of so many GB/s."""
    lanes = [f"""      - {{ep1: {{component: "xpu"}}, ep2: {{component: "sw{n}"}}, scheme: many2many, link: wire}}""" for n in range(links)]
    switches = [f"      - {{name: sw{n}, count: 1, choice: switch}}" for n in range(links)]
    return "\n".join([f"name: switch_{gpus}_{links}x{bandwidth}", "devices:", "  - name: box", "    components:",
                      f"      - {{name: xpu, count: {gpus}, choice: xpu}}", *switches, "    links:",
                      f"      - {{name: wire, physical: {{bandwidth: {{choice: gigabytes_per_second, gigabytes_per_second: {bandwidth}}}, "
                      "latency: {choice: ns, ns: 100}}}",
                      "    edges:", *lanes, "instances: [{name: box, device: box, count: 1}]", ""])


# By name: text of files that a cell names. Switches with 2, 4 and 8 planes, and the same bandwidth in one link.
GENERATED = {}
for _gpus in (4, 8):
    for _links, _bandwidth in ((1, 100), (1, 200), (1, 400), (1, 800), (2, 100), (4, 100), (8, 100), (2, 200), (4, 50), (8, 50)):
        GENERATED[f"switch{_gpus}_{_links}x{_bandwidth}.yaml"] = switch_of_links(_gpus, _links, _bandwidth)

JOB = """name: pair
dtype: bf16
launches:
  - {{name: first, run: {first}, size: {size}, stream: s0}}
  - {{name: second, {second}, stream: s1}}
"""
JOBS = {"collective": "run: all-gather/ring, size: {size}", "copies": "compute: {{read: {size}, write: {size}}}",
        "pieces": "compute: {{read: {size}, write: {size}, pieces: 64}}"}


@dataclasses.dataclass
class Node:
    gpus: int
    rate: float  # of all links of a GPU, one direction
    nics: int
    nic_rate: float


class Grid:
    """What machines and templates there are: asked of the binary."""

    def __init__(self, binary, small=False):
        self.binary, self.small, self.notes = binary, small, []
        names = [line.split()[0] for line in self._ask("machine", "list").splitlines() if line and line[0].isalpha()]
        self.builtin = [name for name in names if ":" not in name and name != "GPU"]
        self.files = sorted(str(path) for folder in ("nccl_topo", "infragraph") for path in (INPUTS / folder).glob("*.*"))
        if not self.files:
            self.notes.append("../shared/inputs is not there: no topology files of others in this run")
        self.files = [path for path in self.files if self._reads(path)]
        shown = self._ask("plan", "show")
        self.templates = [match[1] for match in re.finditer(r"^([a-z0-9-]+/[a-z0-9-]+):", shown, re.MULTILINE)
                          if match[1].partition("/")[0] in COLLECTIVES and match[1] != "all-to-all/uneven"]
        self._classes, self._parameters, self._nodes = {}, {}, {}

    def _ask(self, *words):
        return subprocess.run([str(self.binary), *words], capture_output=True, text=True, cwd=ROOT, timeout=60).stdout

    def _reads(self, path):
        return subprocess.run([str(self.binary), "machine", "validate", path], capture_output=True, cwd=ROOT, timeout=60).returncode == 0

    def written(self, machine):
        """The name of a file that holds the machine as InfraGraph, or None where it cannot be written."""
        name = re.sub(r"[^\w.-]", "_", machine) + ".infragraph.yaml"
        if name not in GENERATED:
            GENERATED[name] = self._ask("machine", "convert", machine)
        return name if GENERATED[name] else None

    def classes(self, machine):
        """Link classes of a machine: {name: GB/s}."""
        if machine not in self._classes:
            text = self._ask("machine", "show", machine)
            part = text.partition("link classes")[2].partition("\n\n")[0]
            found = {}
            for line in part.splitlines()[2:]:
                match = re.match(r"\s+(\S+)\s+\d+\s+([\d.]+) ([KMGT]?)B/s", line)
                if match:
                    found[match[1]] = float(match[2]) * {"": 1e-9, "K": 1e-6, "M": 1e-3, "G": 1, "T": 1e3}[match[3]]
            self._classes[machine] = found
        return self._classes[machine]

    def node(self, name):
        """GPUs and NICs of one node of a built-in machine, and their rates in B/s, headers off."""
        if name not in self._nodes:
            text, pair = self._ask("machine", "show", name), self._ask("machine", "show", f"{name}:2")
            gpus = int(re.search(r"nodes: (\d+) xpu", text)[1])
            meshed = "switch" not in self._ask("machine", "list").partition(name)[2].partition("\n")[0].lower()
            links = [(int(count), float(goodput) * (1000 if unit == "T" else 1))  # both directions; of meshes each is out of some GPU
                     for count, goodput, unit in re.findall(r"^  \S+\s+(\d+)\s+[\d.]+ [GT]B/s\s+([\d.]+) ([GT])B/s", text, re.MULTILINE)]
            rate = max(count * goodput for count, goodput in links) / gpus / (1 if meshed else 2)
            nics = re.search(r"(\d+)  nic .*rate ([\d.]+) GB/s", pair)
            self._nodes[name] = Node(gpus, rate * 1e9, int(nics[1]) // 2 if nics else 0,
                                     float(nics[2]) * 1e9 if nics else 0)
        return self._nodes[name]

    def parameters(self, machine):
        """[(name, value)] of everything that `machine show` prints and --set takes: of GPUs, links, NICs and switches."""
        if machine not in self._parameters:
            text = self._ask("machine", "show", machine)
            found = []
            for line in text.partition("parameters of ")[2].splitlines()[1:]:
                match = re.match(r"  (\S+)\s\s+(\S+(?: [A-Za-z/]+)?)\s\s", line)
                if match:
                    found.append(("gpu." + match[1], match[2]))
            self._parameters[machine] = found
        return self._parameters[machine]

    def machine(self, draw, most_gpus=256):
        """A machine, as the value of --machine, and words that belong to it."""
        while True:
            kind = draw.choices(("builtin", "builder", "file"), (6, 3, 1 if self.files else 0))[0]
            if kind == "builtin":
                name = draw.choice(self.builtin)
                nodes = draw.choice((1, 1, 2) if self.small else NODES)
                gpus = 72 * nodes if name.startswith("gb200") else 8 * nodes
                if gpus > most_gpus or (self.small and gpus > 16):
                    continue
                return name if nodes == 1 else f"{name}:{nodes}", ()
            if kind == "file":
                return draw.choice(self.files), ()
            name = draw.choice(BUILDERS)
            return name, ("--gpu", draw.choice(MODELS)) if draw.random() < 0.3 else ()

    def program(self, draw):
        """The words of a program: what the library would take, one of its choices, or a template."""
        kind = draw.choices(("auto", "forced", "template"), (4, 3, 4))[0]
        if kind == "template":
            return (draw.choice(self.templates),)
        collective = draw.choice(COLLECTIVES)
        if kind == "auto":
            return (f"{collective}/nccl",)
        words = (f"{collective}/nccl", "--param", f"protocol={draw.choice(PROTOCOLS)}")
        if collective == "all-reduce":
            words += ("--param", f"algorithm={draw.choice(('ring', 'tree'))}")
        return words

    def size(self, draw, least=8 * KIB, most=4096 * MIB):
        most = min(most, 16 * MIB) if self.small else most
        return draw.choice([size for size in SIZES if least <= size <= most])


def cell(program, machine, size, *words, engine="fluid"):
    name, own = machine
    return ("run", *program, "--machine", name, *own, "--size", str(size), "--round-size", "--no-check", "--engine", engine, *words)
