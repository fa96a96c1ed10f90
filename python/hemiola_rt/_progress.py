"""Whether kernels and transfers of a plan can wait for each other for ever: src/compile/fuse/progress.cc. Tiles are taken in their order, by
as few programs as one, and a kernel starts when the one before it on its rank is done."""

import collections

from ._tasks import PlanError


def prove(plan, all_waves):
    """all_waves: Waves by grid. PlanError: a tile waits for what later tiles are needed for, or for what needs room beside the kernel."""
    later, left, by_units = collections.defaultdict(list), collections.Counter(), []

    def order(earlier, other):
        later[earlier].append(other)
        left[other] += 1

    with_part = collections.defaultdict(list)
    steps = set()
    for rank in range(plan.ranks):
        number = 0
        for grid, waves in enumerate(all_waves):
            for wave in waves.waves[rank]:
                step = rank, "wave", number
                steps.add(step)
                if number > 0:
                    order((rank, "wave", number - 1), step)
                for need in {*wave.needs, *(need for turn in waves.turns[rank] for need in turn[2])}:
                    order(need, step)
                if wave.part >= 0:
                    with_part[rank, wave.part].append(step)
                number += 1
    first = all_waves[0]
    for (rank, stream), transfers in first.transfers.items():
        for position, (item, _) in enumerate(transfers):
            point = rank, stream, position
            steps.add(point)
            if "reduce" in item or "group" in item:
                by_units.append(point)
            for earlier in first.before(point):
                order(earlier, point)
            for waves in all_waves:
                for part in waves.part_waits.get(point, ()):
                    for step in with_part[part[:2]]:
                        order(step, point)
    ready = [step for step in steps if left[step] == 0]
    for step in ready:
        for other in later[step]:
            left[other] -= 1
            if left[other] == 0:
                ready.append(other)
    if len(ready) < len(steps):
        raise PlanError("has tiles that wait for transfers which wait for later tiles: a persistent kernel would wait for ever")
    for origin in by_units:
        waiting, seen = [origin], set()
        while waiting:
            step = waiting.pop()
            if step[1] == "wave":
                raise PlanError("has tiles that wait for a sum or a collective, which needs room beside a kernel that waits")
            for other in later[step]:
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
