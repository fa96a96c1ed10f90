"""compile: a plan, alone or in a Triton kernel, as a Python module."""

from __future__ import annotations

import inspect
import json
import os
import pathlib
import shutil
import tempfile
import textwrap
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

from . import _core
from ._errors import bad_input
from ._plan import Plan
from ._shown import Shown

AnyPlan = Union[Plan, str, "os.PathLike[str]"]


class Compiled(Shown):
    """What :func:`compile` made: a schedule for hemiola_rt. Its text is there without PyTorch and Triton; ``module`` and what follows
    import them.

    ``compiled(rt, a=mine, b=weights)`` makes a call on a rank; ``setup`` is done at the first one.
    """

    def __init__(self, made: Mapping[str, Any], ranks: int):
        self.text: str = made["text"]  #: the Python file
        self.plan_hash: str = made["plan_hash"]  #: as the file has it: PLAN
        self.kernel: str = made["kernel"]  #: its name; "" where the products are PyTorch's
        self.dropped: list[str] = list(made["dropped"])  #: configurations that do not fit the chunks, each with the reason
        self.ranks = ranks
        self._module: Any = None
        self._held: dict[tuple[int, str], tuple[Any, Any]] = {}

    def write(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """The text as a file: ``torchrun`` and ``python -m hemiola_rt`` run it."""
        pathlib.Path(path).write_text(self.text, encoding="utf-8")

    @property
    def module(self) -> Any:
        """The text, imported: setup, inputs, run, reference, CONFIGS. ImportError: PyTorch, Triton or hemiola_rt is missing."""
        if self._module is None:
            import hemiola_rt

            # Triton reads the text of its functions from the file, at the first launch.
            folder = tempfile.mkdtemp(prefix="hemiola-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            path = os.path.join(folder, f"compiled_{self.plan_hash}.py")
            self.write(path)
            self._module = hemiola_rt.load_file(path)
        return self._module

    @property
    def configs(self) -> list[dict[str, Any]]:
        """Ways to call the kernel, each a value of ``config``; none where there is no kernel."""
        return list(getattr(self.module, "CONFIGS", []))

    def setup(self, rt: Any, config: Optional[Mapping[str, Any]] = None) -> Any:
        """What a rank holds: its tensors and streams. Once, on all ranks; the same object after that."""
        key = (id(rt), json.dumps(config, sort_keys=True))
        if key not in self._held:  # with the runtime, whose number is nobody else's meanwhile
            self._held[key] = (rt, self.module.setup(rt) if config is None else self.module.setup(rt, config))
        return self._held[key][1]

    def launch(self, rt: Any, config: Optional[Mapping[str, Any]] = None, **given: Any) -> dict[str, Any]:
        """One call. ``given``: inputs by name, copied to their places; what is not given is there. Returns the outputs."""
        return dict(self.module.run(rt, self.setup(rt, config), **given))

    __call__ = launch

    def __repr__(self) -> str:
        what = f"kernel '{self.kernel}'" if self.kernel else "PyTorch"
        return f"<Compiled {what}, plan {self.plan_hash} on {self.ranks} ranks>"


def _plan_of(plan: AnyPlan) -> tuple[Plan, str]:
    """A plan, and what messages call it."""
    if isinstance(plan, Plan):
        return plan, "<plan>"
    if isinstance(plan, str) and plan.lstrip().startswith("{"):
        return Plan.from_json(plan), "<plan>"
    return Plan.load(os.fspath(plan)), os.fspath(plan)


def _function_of(kernel: Any) -> Any:
    """The Python function of a live kernel, below its decorators."""
    function = kernel
    while not inspect.isfunction(function) and hasattr(function, "fn"):
        function = function.fn
    if not inspect.isfunction(function):
        raise bad_input(
            f"{type(kernel).__name__} is no kernel",
            "a @triton.jit function, the path of a file, or the text of one",
        )
    return function


def _live_text(function: Any) -> str:
    """The text of a kernel that is in no file, with the helpers and numbers that it uses."""
    lines, seen = [], set()

    def collect(of: Any) -> None:
        for name in of.__code__.co_names:
            value = of.__globals__.get(name)
            if name in seen or value is None:
                continue
            seen.add(name)
            if isinstance(value, (bool, int, float, str)):
                lines.append(f"{name} = {value!r}\n")
            elif hasattr(value, "fn"):
                inner = _function_of(value)
                if inner is not function and (inner.__module__ or "").split(".")[0] != "triton":
                    collect(inner)
                    lines.append(textwrap.dedent(inspect.getsource(inner)))

    collect(function)
    return "import triton\nimport triton.language as tl\n\n" + "\n".join([*lines, textwrap.dedent(inspect.getsource(function))])


def _source_of(kernel: Any, name: str, helpers: Sequence[str]) -> Optional[_core.KernelSource]:
    if kernel is None:
        return None
    files = [os.fspath(helper) for helper in helpers]
    if isinstance(kernel, os.PathLike):
        return _core.KernelSource(os.fspath(kernel), None, name, files)
    if isinstance(kernel, str):
        is_text = "\n" in kernel
        return _core.KernelSource("<kernel>" if is_text else kernel, kernel if is_text else None, name, files)
    function = _function_of(kernel)
    file = inspect.getsourcefile(function)
    if file is not None and os.path.isfile(file):
        return _core.KernelSource(file, None, function.__name__, files)
    return _core.KernelSource("<kernel>", _live_text(function), function.__name__, files)


def compile(  # noqa: A001: hemiola.compile is its name
    kernel: Any,
    plan: AnyPlan,
    *,
    name: str = "",
    bind: Optional[Mapping[str, str]] = None,
    constants: Optional[Mapping[str, Any]] = None,
    configs: Optional[Sequence[Mapping[str, Any]]] = None,
    helpers: Sequence[str] = (),
    target: str = "cuda",
    check: bool = True,
    allow_partial: bool = False,
) -> Compiled:
    """A plan and a Triton kernel as one fused kernel, which computes while chunks arrive and leave.

    ``kernel``: a live ``@triton.jit`` function (decorators around it are looked through), the path of a file, or its text; ``name``: which
    one of a file. None: no kernel, the plan's products are PyTorch's. ``plan``: a :class:`Plan`, the path of a plan file, or its text.

    ``bind``: the plan's tensor to the kernel's parameter, where names do not tell. ``constants``: values of parameters. ``configs``:
    configurations in place of ``@triton.autotune``'s, each with values of parameters, ``num_warps`` and ``num_stages``. ``check``: prove
    the plan, and what comes of it with a kernel (:class:`WrongProgram`); ``allow_partial``: hand out what is not proven, too. :class:`BadInput`: what ``hemiola compile`` refuses, with line and hint.
    """
    inner, plan_name = _plan_of(plan)
    options = _core.CompileOptions(
        dict(bind or {}), {key: value if isinstance(value, str) else repr(value) for key, value in (constants or {}).items()},
        json.dumps([dict(one) for one in configs]) if configs else "", target, check, allow_partial, plan_name,
    )  # fmt: skip
    return Compiled(_core.compile_plan(inner._core, _source_of(kernel, name, helpers), options), inner.ranks)
