"""What a fused kernel is told of its plan: in which order it takes tiles, what each waits for, and who is told when it is done.

    t.work = KERNEL.work(rt, AXES, VALUES, config)                      # KERNEL is a hemiola_rt.Kernel
    t.work.wave({"M": (0, 64)}, part=0)                                 # tiles of rows 0:64: there from the start
    t.work.wave({"M": (64, 64)}, after=[(t.arrived[1, 0], 2)], part=1)  # these wait for step 2 of a signal
    t.work.part(0, to=[1])                                              # who waits for the tiles of part 0
    t.work.ready(t.done)
    compute[0].launch(t.work, a_ptr=t.a, ...)

Where the kernel's programs move the data too, between their tiles, it is told so between the waves (what stands before a wave is done
before its tiles):

    t.work.wait_signal(t.done[1, 0], step=0)                # what comes next waits for it
    t.work.copy(t.a[64:], t.a_at[1][64:])                   # every program has a share; accumulate(), reduce() add up
    t.work.signal(t.arrived[0, 0], to=0, step=0)            # told by the program that moves the last share

Tiles are numbered as the kernel's own programs number them. A table of rows, one for each place in the order of arrival, says which tile
is taken there; inside a wave tiles are in the order in which the kernel would take them if the wave were all there is.
"""

import math

import torch

from . import _interpreter, _products, _trace


class TileAxis:
    """An axis along which programs divide the work.

    block: elements of a tile, a number or a function of the kernel's parameters. size: the parameter that is the number of elements, None
    where none is. grid: the axis of the kernel's own grid that its programs lie along.
    """

    def __init__(self, block, size=None, grid=0):
        self.block, self.size, self.grid = block, size, grid

    def tile(self, values):
        return self.block(**values) if callable(self.block) else self.block


class _Programs:
    """What stands for `triton.language` in `coordinates`: all programs of a grid at once."""

    def __init__(self, grid):
        self.grid = grid
        self.numbers = torch.arange(math.prod(grid), dtype=torch.int64)

    def program_id(self, axis):
        return self.numbers // math.prod(self.grid[:axis]) % self.grid[axis]

    def num_programs(self, axis):
        return self.grid[axis]

    @staticmethod
    def cdiv(a, b):
        return -(-a // b)

    @staticmethod
    def minimum(a, b):
        return torch.minimum(torch.as_tensor(a), torch.as_tensor(b)) if _is_block(a, b) else min(a, b)

    @staticmethod
    def maximum(a, b):
        return torch.maximum(torch.as_tensor(a), torch.as_tensor(b)) if _is_block(a, b) else max(a, b)

    @staticmethod
    def where(condition, a, b):
        if _is_block(condition, a, b):
            return torch.where(torch.as_tensor(condition).to(torch.bool), torch.as_tensor(a), torch.as_tensor(b))
        return a if condition else b


def _is_block(*values):
    return any(isinstance(value, torch.Tensor) for value in values)


class Kernel:
    """A kernel of an emitted file. `coordinates(tl, **values)` is where its programs lie, by axis of `tiles` (TileAxis by name).

    workers: the parameter that says how many programs it has if it is persistent; tile: the variable of its loop. turned: operands that lie
    transposed in memory. descriptors: by operand that is a descriptor which the host makes, its block as a function of the parameters.
    stores: the operand whose tiles may go straight into a peer's memory. ValueError: what an older Hemiola wrote.
    """

    def __init__(self, function, coordinates, tiles, *, workers=None, tile=None, turned=(), descriptors=None, stores=None, **older):
        if older:
            raise ValueError(f"{function.__name__} was written by an older Hemiola, which said {', '.join(older)}: compile it again")
        self.function, self.coordinates, self.tiles, self.workers, self.tile = function, coordinates, tiles, workers, tile
        self.turned, self.descriptors, self.stores = turned, descriptors or {}, stores

    def work(self, rt, extents, values, config):
        """What one rank's kernel is told: extents are the elements along the axes of tiles."""
        return Work(rt, self, extents, values, config)


class Work:
    """The tables of one kernel of one rank. extents: elements by axis."""

    def __init__(self, rt, kernel, extents, values, config):
        self.rt, self.kernel, self.coordinates, self.axes = rt, kernel.function, kernel.coordinates, kernel.tiles
        self.extents = {name: extents[name] for name in self.axes}
        self.options = {name: config[name] for name in ("num_warps", "num_stages") if name in config}
        self.values = {**values, **{name: value for name, value in config.items() if name not in self.options}}
        self.workers, self.tile, self.descriptors, self.kernel_stores = kernel.workers, kernel.tile, kernel.descriptors, kernel.stores
        self.turned = kernel.turned
        self._blocks = {name: axis.tile(self.values) for name, axis in self.axes.items()}
        self._waves, self._parts, self._turns, self._loop = [], {}, [], None
        self._moves, self._awaited, self._targets, self._stores = [], [], [], {}
        self.number = rt.works  # of this rank
        rt.works += 1
        if _interpreter.is_interpreted():
            _interpreter.prepare()

    def wave(self, box, after=(), part=-1, to=None):
        """Tiles of the elements `box` ({axis: (first, count)}; the others whole) come next. after: (signal, step) that they wait for.
        to: views of a peer's memory and of the kernel's output, in the place of which these tiles are stored."""
        if to is not None and (to[0].shape != to[1].shape or to[0].stride() != to[1].stride() or to[0].dtype != to[1].dtype):
            raise ValueError("what is stored to a peer does not lie there as in the kernel's output")
        self._waves.append((box, tuple(after), part))
        self._targets.append(to)

    def loop(self, extent, block):
        """The kernel has a loop over `extent` elements, `block` in a turn (a function of its parameters), whose turns wait."""
        self._loop = extent, block(**self.values)

    def turns(self, first, count, after=()):
        """Turns of these elements come next."""
        self._turns.append((first, count, tuple(after)))

    def part(self, number, to):
        """These ranks are told when all tiles of a part are stored."""
        self._parts[number] = tuple(to)

    # What the kernel's own programs move.

    @property
    def carries(self):
        """Whether they do: then they wait for each other."""
        return len(self._moves) > 0

    def copy(self, target, source):
        """target = source, before the tiles of the waves that come next."""
        self._move(target, source, None)

    def reduce(self, target, source, operand):
        """target = source + operand, likewise."""
        self._move(target, source, operand)

    def accumulate(self, target, source):
        """target = target + source, likewise."""
        self._move(target, source, target)

    def wait_signal(self, signal, step):
        """The movement that comes next starts once somebody has given the own `signal` its `step` of the call."""
        self._awaited.append((signal, step))

    def signal(self, signal, to, step):
        """Rank `to` is told of the movement before, in `step` of the call."""
        self._moves[-1]["tells"].append((to, signal.slot, signal.steps, step + 1))

    def _move(self, target, source, operand):
        given = (source,) if operand is None else (source, operand)
        tensors = [_products.same_shape(one, target) for one in given]
        are_views = all(one.data_ptr() == view.data_ptr() and one.dtype == target.dtype for one, view in zip(given, tensors))
        lies = _products.rows_together(target, *tensors) if are_views else None
        if lies is None:
            raise ValueError(f"a movement of {tuple(target.shape)}, which does not lie as rows at equal distances or is of several types")
        self._moves.append({"lies": lies, "tensors": (target, *tensors), "after": tuple(self._awaited), "tells": [], "before": len(self._waves)})
        self._awaited = []

    def _aligned_to(self):
        """Bytes that the kernel takes all movements to begin at multiples of."""
        names = getattr(self.kernel, "fn", self.kernel).__globals__
        return getattr(names.get("CARRIED_BYTES", 1), "value", 1)

    def _carried(self, rows_of_waves, needs, begins):
        """Tables: by movement as hm_carry has it, who is told, and by place how many movements come before its tile."""
        moves, told = [], []
        for move in self._moves:
            rows, width, pitches = move["lies"]
            addresses = [one.data_ptr() for one in move["tensors"]]
            if any(address % self._aligned_to() for address in addresses):
                raise ValueError(f"a movement of {tuple(move['tensors'][0].shape)} begins elsewhere than the kernel takes for granted")
            adds = len(addresses) > 2
            begin, end = self._needs_of(move["after"], needs, begins)
            moves.append((begin, end, len(told), len(told) + len(move["tells"]), rows, width, int(adds), addresses[0], pitches[0],
                          addresses[1], pitches[1], addresses[-1], pitches[-1]))
            told.extend(move["tells"])
        before = [sum(move["before"] <= wave for move in self._moves) for wave, count in enumerate(rows_of_waves) for _ in range(count)]
        return moves, told, before

    def ready(self, done=None):
        """Makes the tables. done: signals by (rank, part). ValueError: waves are not whole tiles, or not every tile once."""
        extents = self.extents
        whole = self._tiles_of(extents)
        number_at = torch.full((math.prod(whole.values()),), -1, dtype=torch.int64)
        places = self._places(extents, whole, {name: 0 for name in self.axes}, whole)
        number_at[places] = torch.arange(len(places))
        if (number_at < 0).any():
            raise ValueError("the kernel's programs do not take every tile")
        rows, needs, begins = [], [], {}
        # By number of a part its place in the table: those of an earlier launch have the numbers below.
        counts, place_of_part = {number: 0 for number in self._parts}, {number: place for place, number in enumerate(sorted(self._parts))}
        for box, after, part in self._waves:
            numbers = self._numbers(box, extents, whole, number_at)
            begin, end = self._needs_of(after, needs, begins)
            row = torch.empty((len(numbers), 4), dtype=torch.int64)
            row[:, 0], row[:, 1], row[:, 2], row[:, 3] = numbers, begin, end, place_of_part[part] if part >= 0 else -1
            rows.append(row)
            if part >= 0:
                counts[part] += len(numbers)
        of_waves = [len(row) for row in rows]
        self._target_of = [to for to, count in zip(self._targets, of_waves) for _ in range(count)]
        rows = torch.cat(rows)
        if len(rows) != len(number_at) or (torch.bincount(rows[:, 0], minlength=len(number_at)) != 1).any():
            raise ValueError("the waves do not have every tile once")
        self.tiles, self._processors = len(rows), self.rt.processors()  # whatever others ask for later
        self._whole, self._place_of = whole, places.tolist()
        turns, carried = self._loop_rows(needs, begins), self._carried(of_waves, needs, begins)
        self._tables(rows, turns, needs, counts, done)
        if self.carries:
            self._carry(*carried)
        return self

    def _carry(self, moves, told, before):
        device = self.rt.device
        self.arguments.update({
            "hm_moves": torch.tensor(moves, dtype=torch.int64).reshape(-1).to(device),
            "hm_told": torch.tensor(told or [(0, 0, 0, 0)], dtype=torch.int32).reshape(-1).to(device),
            "hm_before": torch.tensor(before, dtype=torch.int32).to(device), "hm_all": len(moves),
            "hm_shares": torch.zeros(len(moves), dtype=torch.int32, device=device)})

    @staticmethod
    def _needs_of(after, needs, begins):
        """First and last of `needs`, which has each list of them once. What waits for nothing begins where no needs do."""
        needed = tuple((signal.slot, signal.steps, step + 1) for signal, step in after)
        if needed not in begins:
            begins[needed] = len(needs) if needed else -1
            needs.extend(needed)
        return begins[needed], begins[needed] + len(needed)

    def _loop_rows(self, needs, begins):
        """By piece in the order of arrival: first turn and the one behind its last, first and last need."""
        if self._loop is None:
            return []
        extent, block = self._loop
        rows, turns = [], []
        for first, count, after in self._turns:
            if first % block != 0 or (count % block != 0 and first + count != extent):
                raise ValueError(f"turns of {block} elements of the loop straddle the chunk {first}:{first + count}")
            needed = self._needs_of(after, needs, begins)
            begin, end = first // block, -(-(first + count) // block)
            rows.append((begin, end, *needed))
            turns.extend(range(begin, end))
        if sorted(turns) != list(range(-(-extent // block))):
            raise ValueError("the loop does not have every turn once")
        return rows

    def _tiles_of(self, extents):
        return {name: -(-extent // self._blocks[name]) for name, extent in extents.items()}

    def _places(self, extents, tiles, firsts, whole):
        """Where the kernel's programs lie in the space of all tiles, if these extents were all there is and stood at `firsts`."""
        grid = [1, 1, 1]
        values = dict(self.values)
        for name, axis in self.axes.items():
            grid[axis.grid] *= tiles[name]
            if axis.size is not None:
                values[axis.size] = extents[name]
        programs = _Programs(grid)
        if self.tile is not None:
            values[self.tile] = programs.numbers
        at = self.coordinates(programs, **values)
        places = torch.zeros_like(programs.numbers)
        for name in self.axes:
            places = places * whole[name] + firsts[name] + at[name]
        return places

    def _numbers(self, box, extents, whole, number_at):
        """Of the tiles of a wave, the kernel's own numbers, in the order in which it would take them."""
        inside = {name: box.get(name, (0, extent)) for name, extent in extents.items()}
        firsts, counts = {}, {}
        for name, (first, count) in inside.items():
            block = self._blocks[name]
            if first % block != 0 or (count % block != 0 and first + count != extents[name]):
                raise ValueError(f"tiles of {block} elements along {name} straddle the chunk {first}:{first + count}")
            firsts[name], counts[name] = first // block, -(-count // block)
        own = {name: count for name, (first, count) in inside.items()}
        if all(own[name] == extents[name] or axis.size is not None for name, axis in self.axes.items()):
            return number_at[self._places(own, counts, firsts, whole)]
        # The kernel's order of all tiles, of which these are some.
        places, taken = torch.zeros((), dtype=torch.int64), 1
        grids = torch.meshgrid([torch.arange(firsts[name], firsts[name] + counts[name]) for name in self.axes], indexing="ij")
        for name, at in zip(self.axes, grids):
            places, taken = places * whole[name] + at, taken * counts[name]
        return number_at[places.reshape(-1)].sort().values

    def _tables(self, rows, turns, needs, counts, done):
        rt = self.rt
        parts, tells = [], []
        for number in sorted(self._parts):
            slot = done[rt.rank, number].slot
            parts.append((counts[number], len(tells), len(tells) + len(self._parts[number])))
            tells.extend((rank, slot) for rank in self._parts[number])

        def table(values):
            made = torch.as_tensor(values, dtype=torch.int32).reshape(-1)
            return (made if len(made) > 0 else torch.zeros(1, dtype=torch.int32)).to(rt.device)

        self.tells = tells  # (rank, slot) of the signals that the kernel sends
        self.arguments = {"hm_rows": table(rows), "hm_turns": table(turns), "hm_needs": table(needs), "hm_signals": rt.signal_words(), "hm_parts": table(parts),
                          "hm_tells": table(tells), "hm_counters": table([0] * len(parts)), "hm_peers": rt.signal_addresses()}
        self.arguments["hm_pieces"] = len(turns)
        grid = [1, 1, 1]
        for name, axis in self.axes.items():
            grid[axis.grid] *= -(-self.extents[name] // self._blocks[name])
        last = max(axis.grid for axis in self.axes.values())
        self.arguments.update({f"hm_grid_{axis}": grid[axis] for axis in range(last + 1)})

    def place_of(self, number):
        """Where a tile of the kernel's own number lies, in tiles along each axis."""
        place, found = self._place_of[number], {}
        for name, count in reversed(self._whole.items()):
            place, found[name] = divmod(place, count)
        return {name: found[name] for name in self.axes}

    def described(self, tensors):
        """The same tensors, as descriptors where the kernel takes those."""
        blocks = {name: block(**self.values) for name, block in self.descriptors.items()}
        if not blocks:
            return tensors
        from triton.tools.tensor_descriptor import TensorDescriptor
        # A descriptor is of a tensor as it lies in memory.
        return {name: TensorDescriptor.from_tensor(tensor.t() if name in self.turned else tensor, list(blocks[name])) if name in blocks else tensor
                for name, tensor in tensors.items()}

    def launch(self, call, tensors):
        """Starts the kernel on the current stream, in call number `call`."""
        runs = self.runs(call, tensors)
        if len(runs) == 1:
            runs[0]()
        else:
            _interpreter.at_once(runs)

    def runs(self, call, tensors):
        """A launch as functions: one, or, in the interpreter, one for each of the programs that wait for each other."""
        programs, arguments = self.launched(call, tensors)

        def run(grid=(1,)):
            with _trace.launched(self, call):
                start(self.kernel, grid, arguments, self.options)
        if self.carries and _interpreter.is_interpreted():
            return _interpreter.programs(run, (programs,))
        return [lambda: run((programs,))]

    def launched(self, call, tensors):
        """What a launch in call number `call` is: how many programs, and the kernel's arguments by name."""
        programs = self.tiles
        arguments = {**self.values, **self.arguments, **self.described(tensors), "hm_call": call}
        if self.tile is not None:
            least = _interpreter.TOGETHER if self.carries and _interpreter.is_interpreted() else 1
            programs = min(self.tiles, max(least, self._processors))
            if self.workers is not None:
                arguments[self.workers] = programs
        if self.kernel_stores is not None:
            arguments["hm_stores"] = self._addresses(tensors[self.kernel_stores])
        return programs, {name: value for name, value in arguments.items() if name in self.kernel.arg_names}


    def _addresses(self, output):
        """By place: where the output is for its tile, so that what the kernel adds to it leads to the peer's part."""
        base = output.data_ptr()
        if base not in self._stores:
            found = [base if to is None else to[0].data_ptr() - (to[1].data_ptr() - base) for to in self._target_of]
            if any(address % 16 != 0 for address in found):
                raise ValueError("a part that is stored to a peer begins at no multiple of 16 bytes")
            self._stores[base] = torch.tensor(found, dtype=torch.int64).to(self.rt.device)
        return self._stores[base]


def start(kernel, grid, arguments, options):
    """Starts a kernel on the current stream."""
    if not _interpreter.is_interpreted():
        _allow_descriptors()
    kernel[grid](**arguments, **options)


def _allow_descriptors():
    """Descriptors that a kernel makes need memory, which Triton asks its caller for: an allocator, unless the caller has set one."""
    import triton
    from triton.runtime import _allocation
    current = getattr(_allocation, "_allocator", None)
    current = current.get() if hasattr(current, "get") else current
    if current is None or isinstance(current, _allocation.NullAllocator):
        triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))


def has_bulk_stores():
    """Whether stores by descriptors are TMA's here, whose completion is waited for: not in Triton's interpreter, and not on AMD GPUs."""
    return not _interpreter.is_interpreted() and torch.version.hip is None
