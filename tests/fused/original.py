"""A fused kernel beside the kernel that it was made of: both run in Triton's interpreter on the same values, and what they leave is compared.

    python original.py     # jobs as lines of JSON on stdin, for each an outcome as a line of JSON on stdout (tools/study kernel_fusion asks)

A job has `fused` (an emitted file), `source` and `kernel` (the original's file and name), `folder` (what its imports begin at), `arrives`
(the operand that is pulled in chunks from the next rank's `sent`), `written` (operands that are stored or added to), `indices` (operands
whose values are part of addresses) and `tries` (how many choices of values).

Copies are made only when the kernels of all ranks wait for something, and what has not arrived is NaN. A stranger's kernel may want values
that its text does not tell: offsets, numbers of rows, flags. `Values` are tried until the interpreter runs the original without an access
outside of its tensors, and with a result that depends on what arrives. Where none do, the outcome is "not run", with the first reason.
"""

import ast
import itertools
import json
import os
import pathlib
import pickle
import re
import signal
import sys

import torch

from hemiola_rt import _interpreter, load_file
from source_text import Package

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "torch"))
from interleaved import InterleavedWorld, KernelOperation  # noqa: E402

SPARE = 1 << 17  # elements of a tensor that the plan does not have
MARGIN = 1 << 12  # zeros around every tensor: blocks may look past the end
SECONDS = 30  # of CPU time
MOST = 12  # choices of values
TOLERANCE = {torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 3e-2}


class NotRun(RuntimeError):
    """Why the original cannot be compared with, with these values."""


class Values:
    """What operands hold. Those of `integers` hold integers: "few" (0 and 1), "count" (0, 1, 2, ...), "ramp" (0, 16, 32, ...) or "zero"."""

    def __init__(self, integers=(), of="few"):
        self.integers, self.of = tuple(integers), of

    def __str__(self):
        return f"integers ({self.of}) in {', '.join(self.integers)}" if self.integers else "floats everywhere"

    def fill(self, tensor, seed):
        chance = torch.Generator().manual_seed(seed)
        if tensor.is_floating_point():
            made = torch.rand(tensor.shape, generator=chance) * 0.75 + 0.25
        elif self.of == "few":
            made = torch.randint(0, 2, tensor.shape, generator=chance)
        else:
            made = torch.arange(tensor.numel()).view(tensor.shape) * {"count": 1, "ramp": 16, "zero": 0}[self.of]
        tensor.copy_(made.to(tensor.dtype))


def choices(names, indices, extras):
    """Values to try, the likeliest first. extras: operands that the plan does not have, often offsets and flags."""
    known = [name for name in names if name in indices]
    likely = known + [name for name in names if name in extras and name not in known]
    for integers in (known, likely) if likely != known else (known,):
        for of in ("few", "count", "ramp", "zero") if integers else ("few",):
            yield Values(integers, of)
    for name in names:
        if name not in known:
            yield Values([*known, name])


# Tensors with room, and a look at every access.


def roomy(shape, dtype):
    """Zeros, with zeros on both sides."""
    count = torch.Size(shape).numel()
    return torch.zeros(count + 2 * MARGIN, dtype=dtype)[MARGIN:MARGIN + count].view(shape)


def copy_of(tensor):
    """The same values and strides, with room."""
    turned = tensor.dim() == 2 and not tensor.is_contiguous()
    made = roomy(tuple(reversed(tensor.shape)) if turned else tensor.shape, tensor.dtype)
    made = made.t() if turned else made
    made.copy_(tensor)
    return made


class Fence:
    """While `spans` ([first, end) addresses) is a list, what a kernel loads and stores has to lie in one of them, and what its programs leave
    must not depend on their order. NotRun: it does."""

    spans = None
    stores = []  # (program, addresses, values), in order

    @classmethod
    def build(cls):
        from triton.runtime import interpreter
        builder = interpreter.interpreter_builder
        load, store = builder.create_masked_load, builder.create_masked_store

        def loaded(pointers, mask, *rest, **named):
            cls.look(pointers, mask, "loads")
            return load(pointers, mask, *rest, **named)

        def stored(pointers, value, mask, *rest, **named):
            cls.look(pointers, mask, "stores")
            if cls.spans is not None:
                of = mask.data.astype(bool)
                cls.stores.append((builder.grid_idx, pointers.data[of], value.data[of]))
            return store(pointers, value, mask, *rest, **named)

        builder.create_masked_load, builder.create_masked_store = loaded, stored

    @classmethod
    def look(cls, pointers, mask, what):
        if cls.spans is None:
            return
        touched = pointers.data[mask.data.astype(bool)]
        if touched.size == 0:
            return
        first, last = int(touched.min()), int(touched.max())
        if not any(begin <= first and last < end for begin, end in cls.spans):
            raise NotRun(f"it {what} where none of its tensors is")

    @classmethod
    def look_back(cls):
        """NotRun: two programs of the grid stored different values at one address."""
        last = {}  # by address: what each program left there
        for program, addresses, values in cls.stores:
            last.setdefault(program, {}).update(zip(addresses.ravel().tolist(), (value.tobytes() for value in values.ravel())))
        seen = {}
        for of_program in last.values():
            for address, value in of_program.items():
                if seen.setdefault(address, value) != value:
                    raise NotRun("its programs write over each other: their order decides")


def span_of(tensor):
    storage = tensor.storage()
    return storage.data_ptr(), storage.data_ptr() + len(storage) * tensor.element_size()


# The two kernels.


def kernels_first(ready):
    """Copies are made when nothing else can go on."""
    return next((s for s in ready if isinstance(s.operations[0], KernelOperation)), ready[0])


def grid_of(work):
    """The programs that the original has for the tiles of `work`."""
    if work.tile is not None:
        return (min(work.tiles, work.rt.processors()),)
    grid = [1, 1, 1]
    for name, axis in work.axes.items():
        grid[axis.grid] *= -(-work.extents[name] // axis.tile(work.values))
    return tuple(grid)


def run_original(kernel, work, tensors):
    """The kernel as it was, on tensors that it changes."""
    grid = grid_of(work)
    arguments = {**work.values, **work.described(tensors)}
    if work.workers is not None:
        arguments[work.workers] = grid[0]
    Fence.spans, Fence.stores = [span_of(tensor) for tensor in tensors.values()], []
    try:
        kernel[grid](**{name: value for name, value in arguments.items() if name in kernel.arg_names}, **work.options)
        Fence.look_back()
    finally:
        Fence.spans = None


def difference(left, right):
    """Relative to the largest value; infinite where one has a number and the other has none."""
    left, right = left.double(), right.double()
    there = torch.isfinite(right)
    if not torch.equal(there, torch.isfinite(left)):
        return float("inf")
    return ((left - right)[there].abs().max() / right[there].abs().max().clamp(min=1e-30)).item() if there.any() else 0.0


class Comparison:
    """One job with one choice of values. `stage`: what is under way."""

    def __init__(self, job, values):
        self.job, self.values, self.stage = job, values, "the fused file"
        self.schedule = load_file(job["fused"])
        self.world = InterleavedWorld(self.schedule.RANKS)
        self.works, self.given = [], []  # by rank, of the launch

    def prepare(self):
        """Gives a call to all ranks, with values of our own in place of what their launches have."""
        for rt in self.world.members:
            rt._allocate_local = roomy
            t = self.schedule.setup(rt)
            for place, (name, tensor) in enumerate(sorted(rt._tensors.items())):
                self._fill(name, tensor, place, rt.rank)
            for stream in rt.all_streams():
                stream.launch = self._launch(rt, stream.launch)
            self.schedule.run(rt, t, **{name: None for name in self.schedule.EXTRAS})

    def _fill(self, name, tensor, place, rank):
        if name == self.job["arrives"]:
            tensor.fill_(float("nan"))
        elif name not in self.job["written"]:
            self.values.fill(tensor, 97 * place + rank)

    def _launch(self, rt, give):
        def launch(work, **tensors):
            for place, name in enumerate(sorted(tensors)):
                is_integer = name in self.values.integers
                if is_integer and name == self.job["arrives"]:
                    raise NotRun("what arrives would have to be an index")
                if tensors[name] is None or is_integer:
                    shape = (SPARE,) if tensors[name] is None else tensors[name].shape
                    tensors[name] = roomy(shape, torch.int32 if is_integer else torch.float32)
                    self._fill(name, tensors[name], 31 + place, rt.rank)
            self.works.append(work)
            self.given.append(tensors)
            give(work, **tensors)
        return launch

    def sent(self, rank):
        """What arrives at a rank."""
        return self.world.memory["sent"][(rank + 1) % self.schedule.RANKS]

    def original(self, kernel, rank, change=lambda values: values):
        """Operands after the original ran on what a rank was given, and on `change` of what arrives at it."""
        tensors = {name: copy_of(tensor) for name, tensor in self.given[rank].items()}
        tensors[self.job["arrives"]].copy_(change(self.sent(rank)))
        run_original(kernel, self.works[rank], tensors)
        return tensors

    def run(self):
        self.prepare()
        self.stage = "the original"
        package = Package(self.job["folder"], vars(self.schedule))
        kernel = package.function(self.job["source"], self.job["kernel"])
        expected = [self.original(kernel, rank) for rank in range(self.schedule.RANKS)]
        made = [name for name in self.job["written"] if name in expected[0]]
        changed = [name for name in made if difference(expected[0][name], self.given[0][name]) != 0]
        if not any(torch.isfinite(expected[0][name]).any() for name in changed):
            raise NotRun("it writes nothing, or no number")
        other = self.original(kernel, 0, lambda values: 1.25 - 0.5 * values)
        if all(difference(other[name], expected[0][name]) == 0 for name in changed):
            raise NotRun("its result does not depend on what arrives")
        self.stage = "the fused kernel"
        self.world.execute(kernels_first)
        worst = max(difference(self.given[rank][name], of[name]) for rank, of in enumerate(expected) for name in made)
        if not worst <= TOLERANCE[self.sent(0).dtype]:
            return {"outcome": "differs", "why": f"the results are {worst:.3g} apart, with {self.values}"}
        return {"outcome": "equal", "why": f"largest difference {worst:.1e}, with {self.values}"}


def in_child(job, values):
    """A comparison in a process of its own, as kernels may have no end and write anywhere."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(20 * SECONDS)  # of what waits without working
        comparison = None
        try:
            comparison = Comparison(job, values)
            made = comparison.run()
        except Exception as error:  # of a stranger's kernel: anything
            root = error.__cause__ or error
            said = (str(root).strip().splitlines() or [""])[-1]
            why = said if isinstance(root, NotRun) else f"{type(root).__name__}: {said}"
            of_fused = not isinstance(root, NotRun) and (comparison is None or comparison.stage != "the original")
            made = {"outcome": "differs" if of_fused else "not run", "why": why}
        with os.fdopen(write, "wb") as file:
            pickle.dump(made, file)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        text = file.read()
    status = os.waitpid(child, 0)[1]
    if text:
        return pickle.loads(text)
    is_late = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGPROF)
    return {"outcome": "not run", "why": f"no end in {SECONDS} s of CPU time" if is_late else f"its process ended with status {status}"}


def operands_of(schedule, text):
    """All operands of an emitted file's kernel, and those of them that the plan does not have."""
    launch = next(call for call in ast.walk(ast.parse(text)) if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "launch")
    own = re.findall(r"^    (\w+) +\[.*, the kernel's own$", schedule.__doc__, re.MULTILINE)
    return [one.arg for one in launch.keywords], [*own, *schedule.EXTRAS]


def compare(job):
    """The outcome of a job: {"outcome": "equal", "differs" or "not run", "why"}."""
    try:
        schedule = load_file(job["fused"])
    except Exception as error:  # an emitted file that is no module is a defect
        return {"outcome": "differs", "why": f"the fused file cannot be imported: {error}"}
    names, own = operands_of(schedule, pathlib.Path(job["fused"]).read_text(encoding="utf-8"))
    first = None
    read = [name for name in names if name not in job["written"]]
    for values in itertools.islice(choices(read, job["indices"], own), job.get("tries", MOST)):
        made = in_child(job, values)
        if made["outcome"] != "not run":
            return made
        first = first or made
        if "no end" in made["why"]:
            break
    return first


def main():
    torch.set_num_threads(1)
    _interpreter.prepare()
    Fence.build()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # kernels may print
    for line in sys.stdin:
        print(json.dumps(compare(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
