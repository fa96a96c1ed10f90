"""A column-parallel linear layer whose gather hides under its product, and whose gradient's reduce-scatter hides under that product.

    hemiola plan make ag-gemm/swizzle --ranks 2 --param m=128 --param n=64 --param k=32 --param dtype=float16 -o ag.json
    hemiola plan make gemm-rs/direct --ranks 2 --param m=128 --param n=32 --param k=64 --param dtype=float16 -o rs.json
    hemiola compile examples/kernels/gemm_persistent.py --plan ag.json -o forward.py
    hemiola compile examples/kernels/gemm_persistent.py --plan rs.json -o backward.py

    rt = hemiola_rt.connect()
    layer = ColumnParallel(rt, forward, backward)       # the two files as modules
    y = layer(x, w)                                     # x: [rows of this rank, k], w: [k, columns of this rank]; y: [all rows, columns]
    y.sum().backward()                                  # x.grad: [rows of this rank, k], w.grad: [k, columns]

m of the plans is the number of all rows; of ag-gemm n is all columns and k the depth, of gemm-rs the other way round.
`operator()` is the same as an operator of torch.library, which torch.compile keeps as it is.
"""

import contextlib

import torch


class ColumnParallel:
    """rt: a rank. forward, backward: emitted files of ag-gemm and gemm-rs. All ranks make it, and call it, in the same order."""

    def __init__(self, rt, forward, backward):
        self.rt = rt
        self._scopes = contextlib.ExitStack()  # names of tensors are apart
        self._scopes.enter_context(rt.scope("forward"))
        self._forward = forward, forward.setup(rt)
        self._scopes.enter_context(rt.scope("backward"))
        self._backward = backward, backward.setup(rt)

    def close(self):
        self._scopes.close()

    def __call__(self, x, w):
        return _ColumnParallel.apply(x, w, self)

    def product(self, x, w):
        """(rows of all ranks times w, rows of all ranks): copies, since the next call writes to the same places."""
        file, t = self._forward
        y = self._done(file.run(self.rt, t, a=x, b=w)["c"])
        return y, self._done(t.a)

    def gradient(self, grad, gathered, w):
        """Of x and of w."""
        file, t = self._backward
        return self._done(file.run(self.rt, t, a=grad, b=w.t())["c"]), gathered.t() @ grad

    def _done(self, tensor):
        if self.rt.device.type == "cpu":  # streams are threads there; on GPUs what comes next is behind the call
            self.rt.synchronize()
        return tensor.clone()


class _ColumnParallel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, layer):
        y, gathered = layer.product(x, w)
        ctx.save_for_backward(gathered, w)
        ctx.layer = layer
        return y

    @staticmethod
    def backward(ctx, grad):
        grad_x, grad_w = ctx.layer.gradient(grad.contiguous(), *ctx.saved_tensors)
        return grad_x, grad_w, None


def operator(layer, name="hemiola::column_parallel"):
    """layer(x, w) as an operator of torch.library (PyTorch 2.4 or newer), with its gradient."""
    @torch.library.custom_op(name, mutates_args=())
    def both(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return layer.product(x, w)

    @both.register_fake
    def _(x, w):
        rows = x.shape[0] * layer.rt.ranks
        return x.new_empty(rows, w.shape[1]), x.new_empty(rows, x.shape[1])

    def keep(ctx, inputs, output):
        ctx.save_for_backward(output[1], inputs[1])

    def gradient(ctx, grad, _):
        return layer.gradient(grad.contiguous(), *ctx.saved_tensors)

    both.register_autograd(gradient, setup_context=keep)
    return lambda x, w: both(x, w)[0]
