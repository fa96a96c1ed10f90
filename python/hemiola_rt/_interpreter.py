"""Triton's interpreter on memory that others write meanwhile: kernels on CPUs, for tests.

The interpreter copies the storage of every argument to the host and back behind the kernel. On a CPU that is a copy of memory onto
itself, which would undo what another process or thread wrote during it. It runs the programs of a grid one after the other, and a kernel
that waits looks again and again; where its thread takes turns with others (`turns`), these run in between. Where programs of a grid wait
for each other, each is a kernel of its own (`programs`), in a thread of its own.
"""

import math
import os
import sys
import threading
import time

import torch

from . import _trace

TOGETHER = 3  # programs of a grid that wait for each other: so many stand for a GPU's multiprocessors

turns = threading.local()  # .turn: of a kernel whose thread lets others run in its pause(); .grid_idx, .grid_dim: its program; .alone: as which program it runs


def is_interpreted():
    """Whether kernels run in Triton's interpreter."""
    return os.environ.get("TRITON_INTERPRET") == "1"


class _Scope:
    def restore(self):
        """The language stays as interpreted kernels need it: several may be under way."""


def prepare():
    """Lets interpreted kernels work on tensors of CPUs in place, several at a time, and, with a PyTorch before 2.0, work at all."""
    from triton.runtime import interpreter
    if not hasattr(torch.Tensor, "untyped_storage"):
        torch.Tensor.untyped_storage = lambda tensor: tensor.storage()._storage
    if interpreter.GridExecutor._restore_args_dev is _nothing:
        return
    if not hasattr(torch.float32, "itemsize"):  # what a descriptor's own check of its alignment asks for
        from triton.tools import tensor_descriptor
        tensor_descriptor.TensorDescriptor.__post_init__ = _nothing
    interpreter.GridExecutor._restore_args_dev = _nothing
    patch, patched, language = interpreter._patch_lang, set(), interpreter.tl

    def patch_once(function):
        _look_up_later(function.__globals__, language.core.is_builtin)
        known = frozenset(id(value) for value in function.__globals__.values() if value is language or value is language.core)
        if known not in patched:
            patched.add(known)
            patch(function)
        return _Scope()

    interpreter._patch_lang = patch_once
    rewrite, reading = interpreter.FunctionRewriter.rewrite_ast, threading.Lock()

    def rewritten(rewriter, *arguments, **named):
        with reading:  # Python 3.11 reads no two texts at a time: two threads that do end in a SystemError
            return rewrite(rewriter, *arguments, **named)

    interpreter.FunctionRewriter.rewrite_ast = rewritten
    builder = interpreter.interpreter_builder
    for name in ("grid_idx", "grid_dim"):  # several kernels may be under way, each in a thread of its own
        setattr(type(builder), name, _of_thread(name))
    change = builder.create_atomic_rmw

    def atomic(operation, pointer, value, mask, order, scope):
        turn = getattr(turns, "turn", None)
        is_of_signal = turn is not None and pointer.data.size == 1
        tells = "XCHG" in str(operation).upper()
        if is_of_signal and not tells:
            turn.pause()
        elif getattr(turns, "alone", None) is not None and not tells and pointer.data.size == 1:
            time.sleep(0)  # Python has one thread at a time: the one that is waited for
        old = change(operation, pointer, value, mask, order, scope)
        traced = _trace.current() if pointer.data.size == 1 else None
        if traced is not None and tells:
            traced.told(builder, pointer.data.reshape(-1)[0], value)
        elif traced is not None and not value.data.any():
            traced.looked(pointer.data.reshape(-1)[0], old)
        if is_of_signal and tells:
            turn.has_moved = True
            turn.pause()
        return old

    builder.create_atomic_rmw = atomic
    load = builder.create_masked_load

    def loaded(*arguments, **named):
        # Between two looks at the same signal nothing is loaded: the kernel has gone on.
        turn = getattr(turns, "turn", None)
        if turn is not None:
            turn.has_moved = True
        traced = _trace.current()
        if traced is not None and arguments[0].data.size == 1:
            traced.loaded(builder, arguments[0].data.reshape(-1)[0])
        return load(*arguments, **named)

    builder.create_masked_load = loaded
    difference = builder.create_sub

    def subtracted(left, right):
        traced = _trace.current()
        if traced is not None:
            traced.subtracted(builder, left, right)
        return difference(left, right)

    builder.create_sub = subtracted
    product = builder.create_dot

    def multiplied(left, right, *rest, **named):
        # The interpreter (Triton 3.9) holds bfloat16 as its bits, and multiplies those.
        return product(_widened(interpreter, left), _widened(interpreter, right), *rest, **named)

    builder.create_dot = multiplied


def _of_thread(name):
    """An attribute that every thread has its own of."""
    def get(builder):
        alone = getattr(turns, "alone", None)
        return getattr(turns, name, None) if alone is None else alone[name]

    return property(get, lambda builder, value: setattr(turns, name, value))


def programs(run, grid):
    """A kernel's launch as functions, one for each program of a grid, that may run at the same time. run: starts it with a grid of one."""
    def as_program(number):
        at, rest = [], number
        for extent in grid:
            at.append(rest % extent)
            rest //= extent
        alone = {"grid_idx": (*at, 0, 0)[:3], "grid_dim": (*grid, 1, 1)[:3]}

        def one():
            turns.alone = alone
            try:
                run()
            finally:
                turns.alone = None
        return one
    return [as_program(number) for number in range(math.prod(grid))]


def at_once(functions):
    """Each in a thread of its own. Raises what the first of them raised."""
    errors = []

    def guarded(function):
        try:
            function()
        except Exception as error:  # handed to the caller
            errors.append(error)
    threads = [threading.Thread(target=guarded, args=(function,), daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _look_up_later(names, is_builtin):
    """Functions of the language that a file has names of its own for (exp = tl.exp): the interpreter replaces what `tl` has, so they are
    looked up there whenever they are called."""
    def later(module, name):
        return lambda *arguments, **named: getattr(module, name)(*arguments, **named)

    for name, value in list(names.items()):
        module = sys.modules.get(getattr(value, "__module__", None) or "")
        if callable(value) and is_builtin(value) and hasattr(module, value.__name__):
            names[name] = later(module, value.__name__)


def _widened(interpreter, block):
    """A block of bfloat16 as float32."""
    if block.dtype.scalar != interpreter.tl.bfloat16:
        return block
    bits = block.data.astype("uint32") << 16
    return interpreter.TensorHandle(bits.view("float32"), interpreter.tl.float32)


def _nothing(*_):
    """Instead of copying arguments back."""
