"""Plans: what moves between ranks, and after what, in chunks; and what is computed meanwhile.

docs/plan_files.md says what plans consist of. :class:`PlanBuilder` writes them:

>>> from hemiola import PlanBuilder, rank
>>> plan = PlanBuilder("all-gather", ranks=4)
>>> part = plan.tensor("input", "input", 1)
>>> whole = plan.tensor("output", "output", 4)
>>> main = plan.stream("main")
>>> with main.loop(3) as i:
...     _ = main.push((rank + i + 1) % 4, part[0], whole[rank])
>>> _ = main.copy(part[0], whole[rank])
>>> plan.build()
<Plan 'all-gather': all-gather on 4 ranks, 16 transfers>
"""

from __future__ import annotations

from ._builder import Code, PlanBuilder
from ._computes import Compute, Operand
from ._expression import Expression, rank
from ._plan import Plan, Template, TemplateParameter
from ._regions import Region, Tensor
from ._streams import Dependency, Stream, Transfer

__all__ = [
    "Code", "Compute", "Dependency", "Expression", "Operand", "Plan", "PlanBuilder", "Region", "Stream", "Template",
    "TemplateParameter", "Tensor", "Transfer", "rank",
]  # fmt: skip
