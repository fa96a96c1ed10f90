"""Whether kernels and transfers of a plan can wait for each other for ever, and what launches wait for in front: src/compile/fuse/progress.cc.
Tiles are taken in their order, by as few programs as one, and a kernel starts when the one before it on its rank is done."""

import collections

from ._expressions import evaluate
from ._tasks import PlanError


class _Steps:
    """What has to be done, and what it waits for: waves as (rank, -1, number), transfers as (rank, stream, position)."""

    def __init__(self, plan, all_waves):
        self.later, self.steps, self.by_units, self.first_of = collections.defaultdict(list), set(), [], []
        self._meetings, self._with_part = {}, collections.defaultdict(list)
        self._number_meetings(all_waves[0].transfers)
        for rank in range(plan.ranks):
            self._add_waves(rank, all_waves)
        for (rank, stream), transfers in all_waves[0].transfers.items():
            for position, (item, counters) in enumerate(transfers):
                if "reduce" in item or "group" in item or item["op"] == "copy" or evaluate(item["peer"], rank, counters) == rank:
                    self.by_units.append((rank, stream, position))
                self._add_transfer((rank, stream, position), all_waves)

    def _number_meetings(self, all_transfers):
        """A collective is over once all members are there."""
        counts = collections.Counter()
        for (rank, stream), transfers in all_transfers.items():
            for position, (item, _) in enumerate(transfers):
                if item["op"] == "collective":
                    meeting = 0, -2 - item["group"], counts[rank, item["group"]]
                    counts[rank, item["group"]] += 1
                    self._meetings[rank, stream, position] = meeting
                    self.order((rank, stream, position), meeting)

    def _add_waves(self, rank, all_waves):
        number = 0
        self.first_of.append([])
        for waves in all_waves:
            self.first_of[-1].append(number)
            in_loop = {need for turn in waves.turns[rank] for need in turn[2]}
            for wave in waves.waves[rank]:
                step = rank, -1, number
                self.steps.add(step)
                if number > 0:
                    self.order((rank, -1, number - 1), step)
                for need in {*wave.needs, *in_loop}:
                    self.order(need, step)
                if wave.part >= 0:
                    self._with_part[rank, wave.part].append(step)
                number += 1
        self.first_of[-1].append(number)

    def _add_transfer(self, point, all_waves):
        self.steps.add(point)
        for earlier in all_waves[0].before(point):
            self.order(earlier, point)
        for waves in all_waves:
            for part in waves.part_waits.get(point, ()):
                for step in self._with_part[part[:2]]:
                    self.order(step, point)

    def order(self, earlier, later):
        meeting = self._meetings.get(earlier)
        earlier = earlier if meeting in (None, later) else meeting
        self.steps.update((earlier, later))
        self.later[earlier].append(later)

    def behind(self, origin):
        seen, waiting = set(), [origin]
        while waiting:
            new = set(self.later[waiting.pop()]) - seen
            seen |= new
            waiting.extend(new)
        return seen

    def end(self):
        """Whether all of it is done at some time."""
        left = collections.Counter(step for steps in self.later.values() for step in steps)
        ready = [step for step in self.steps if left[step] == 0]
        for step in ready:
            for other in self.later[step]:
                left[other] -= 1
                if left[other] == 0:
                    ready.append(other)
        return len(ready) == len(self.steps)


def wait_in_front(plan, all_waves):
    """`in_front` of each of all_waves (by grid): by rank the transfers that need compute units, which its launch waits for and its tiles no
    more. PlanError: a tile waits for what later tiles are needed for, or what needs units waits for tiles of a kernel that may hold all."""
    steps = _Steps(plan, all_waves)
    if not steps.end():
        raise PlanError("has tiles that wait for transfers which wait for later tiles: a persistent kernel would wait for ever")
    in_front = [[[] for _ in range(plan.ranks)] for _ in all_waves]
    behind = [[steps.behind((rank, -1, first)) for first in firsts[:-1]] for rank, firsts in enumerate(steps.first_of)]
    held = []
    for point in steps.by_units:
        if not any(step[1] == -1 for step in steps.behind(point)):
            continue
        rank = point[0]
        grid = next((grid for grid, later in enumerate(behind[rank]) if point not in later), len(all_waves))
        if grid < len(all_waves):
            in_front[grid][rank].append(point)
            held.append((point, (rank, -1, steps.first_of[rank][grid])))
        if grid > 0:
            held.append(((rank, -1, steps.first_of[rank][grid] - 1), point))
    for earlier, step in held:
        steps.order(earlier, step)
    if not steps.end():
        raise PlanError("has tiles that wait for a copy within a GPU, a sum or a collective, which needs room beside a kernel that waits")
    for waves, of_grid in zip(all_waves, in_front):
        waves.in_front = of_grid
        for rank, points in enumerate(of_grid):
            last = {point[:2]: point[2] for point in sorted(points)}
            waves.waves[rank] = [wave._replace(needs=_left(wave.needs, last)) for wave in waves.waves[rank]]
            waves.turns[rank] = [(begin, end, _left(needs, last)) for begin, end, needs in waves.turns[rank]]


def _left(needs, last):
    return tuple(need for need in needs if need[2] > last.get(need[:2], -1))
