#!/usr/bin/env python3
"""Makes the HLO modules of this folder with JAX on eight forced host devices.

    python3 -m venv build/jax && build/jax/bin/pip install jax==0.10.2
    build/jax/bin/python tests/hlo/make_modules.py [FOLDER]

Writes FOLDER/NAME.txt (default: this folder), the text that XLA dumps after its optimizations, and
FOLDER/costs.json, what JAX's cost analysis says of each. Paths of sources are cut to the file's name.
"""
import json
import os
import pathlib
import shutil
import sys
import tempfile

DUMPS = tempfile.mkdtemp()
os.environ["XLA_FLAGS"] = (
    f"--xla_force_host_platform_device_count=8 --xla_dump_to={DUMPS} --xla_dump_hlo_as_text"
)
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.sharding import AxisType, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

TOKENS, HIDDEN, FFN = 1024, 512, 2048


def mesh_of(**axes):
    return jax.make_mesh(
        tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes)
    )


def sharded(mesh, *shapes):
    """Arguments, each (shape, spec)."""
    return [
        jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))
        for shape, spec in shapes
    ]


def mlp_tensor_parallel():
    """Columns of w1 and rows of w2 on each GPU: one all-reduce."""
    mesh = mesh_of(tp=8)

    def step(x, w1, w2):
        return jax.nn.relu(x @ w1) @ w2

    arguments = sharded(
        mesh, ((TOKENS, HIDDEN), P()), ((HIDDEN, FFN), P(None, "tp")), ((FFN, HIDDEN), P("tp", None))
    )
    return jax.jit(step, out_shardings=NamedSharding(mesh, P())), arguments


def mlp_sequence_parallel():
    """Rows are gathered before the first product, and the sum of the second is scattered."""
    mesh = mesh_of(tp=8)

    def step(x, w1, w2):
        whole = jax.lax.all_gather(x, "tp", axis=0, tiled=True)
        partial = jax.nn.relu(whole @ w1) @ w2
        return jax.lax.psum_scatter(partial, "tp", scatter_dimension=0, tiled=True)

    mapped = jax.shard_map(
        step, mesh=mesh, in_specs=(P("tp"), P(None, "tp"), P("tp")), out_specs=P("tp")
    )
    arguments = sharded(
        mesh,
        ((TOKENS, HIDDEN), P("tp")),
        ((HIDDEN, FFN), P(None, "tp")),
        ((FFN, HIDDEN), P("tp", None)),
    )
    return jax.jit(mapped), arguments


def train_2d():
    """A step of training on 2 x 4 GPUs: gradients are summed along dp, activations along tp."""
    mesh = mesh_of(dp=2, tp=4)

    def loss(weights, x):
        w1, w2 = weights
        return jnp.sum((jax.nn.relu(x @ w1) @ w2) ** 2)

    def step(w1, w2, x):
        gradients = jax.grad(loss)((w1, w2), x)
        return w1 - 0.1 * gradients[0], w2 - 0.1 * gradients[1]

    specs = P(None, "tp"), P("tp", None)
    arguments = sharded(
        mesh, ((HIDDEN, FFN), specs[0]), ((FFN, HIDDEN), specs[1]), ((TOKENS, HIDDEN), P("dp"))
    )
    return (
        jax.jit(step, out_shardings=tuple(NamedSharding(mesh, spec) for spec in specs)),
        arguments,
    )


def fsdp():
    """Weights are divided among the GPUs and gathered before they are used."""
    mesh = mesh_of(fsdp=8)

    def step(x, w1, w2):
        whole = NamedSharding(mesh, P())
        w1, w2 = (jax.lax.with_sharding_constraint(w, whole) for w in (w1, w2))
        return jax.nn.relu(x @ w1) @ w2

    arguments = sharded(
        mesh,
        ((TOKENS, HIDDEN), P("fsdp")),
        ((HIDDEN, FFN), P(None, "fsdp")),
        ((FFN, HIDDEN), P("fsdp")),
    )
    return jax.jit(step, out_shardings=NamedSharding(mesh, P("fsdp"))), arguments


def scan_layers():
    """Six layers in a loop, each with one all-reduce."""
    mesh = mesh_of(tp=8)

    def step(x, w1, w2):
        def layer(x, weights):
            return x + jax.nn.relu(x @ weights[0]) @ weights[1], None

        return jax.lax.scan(layer, x, (w1, w2))[0]

    arguments = sharded(
        mesh,
        ((TOKENS, HIDDEN), P()),
        ((6, HIDDEN, FFN), P(None, None, "tp")),
        ((6, FFN, HIDDEN), P(None, "tp", None)),
    )
    return jax.jit(step, out_shardings=NamedSharding(mesh, P())), arguments


def moe_dispatch():
    """Tokens go to the GPU of their expert and back; each GPU has one expert."""
    mesh = mesh_of(ep=8)

    def step(tokens, w1, w2):
        here = jax.lax.all_to_all(tokens, "ep", split_axis=0, concat_axis=0, tiled=True)
        out = jax.nn.relu(here @ w1[0]) @ w2[0]
        return jax.lax.all_to_all(out, "ep", split_axis=0, concat_axis=0, tiled=True)

    mapped = jax.shard_map(step, mesh=mesh, in_specs=(P("ep"), P("ep"), P("ep")), out_specs=P("ep"))
    arguments = sharded(
        mesh,
        ((8 * TOKENS, HIDDEN), P("ep")),
        ((8, HIDDEN, FFN), P("ep")),
        ((8, FFN, HIDDEN), P("ep")),
    )
    return jax.jit(mapped), arguments


def heads_to_rows():
    """From columns of all rows to all columns of some rows, then a product (Ulysses)."""
    mesh = mesh_of(sp=8)

    def step(x, w):
        rows = jax.lax.all_to_all(x, "sp", split_axis=0, concat_axis=1, tiled=True)
        return rows @ w

    mapped = jax.shard_map(step, mesh=mesh, in_specs=(P(None, "sp"), P()), out_specs=P("sp"))
    return jax.jit(mapped), sharded(mesh, ((TOKENS, HIDDEN), P(None, "sp")), ((HIDDEN, FFN), P()))


def pipeline():
    """Each GPU is a stage and hands its result to the next one, four times."""
    mesh = mesh_of(pp=8)

    def step(x, w):
        ring = [(i, (i + 1) % 8) for i in range(8)]

        def turn(x, _):
            return jax.lax.ppermute(jax.nn.relu(x @ w[0]), "pp", ring), None

        return jax.lax.scan(turn, x, None, length=4)[0]

    mapped = jax.shard_map(step, mesh=mesh, in_specs=(P("pp"), P("pp")), out_specs=P("pp"))
    arguments = sharded(mesh, ((8 * TOKENS, HIDDEN), P("pp")), ((8, HIDDEN, HIDDEN), P("pp")))
    return jax.jit(mapped), arguments


def convolution():
    """Images of a batch on each GPU; the gradient of the filter is summed."""
    mesh = mesh_of(dp=8)

    def step(images, filters):
        def loss(filters):
            out = jax.lax.conv_general_dilated(
                images, filters, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            return jnp.sum(out**2)

        return filters - jax.grad(loss)(filters)

    arguments = sharded(mesh, ((64, 18, 18, 32), P("dp")), ((3, 3, 32, 64), P()))
    return jax.jit(step, out_shardings=NamedSharding(mesh, P())), arguments


MODULES = [
    mlp_tensor_parallel,
    mlp_sequence_parallel,
    train_2d,
    fsdp,
    scan_layers,
    moe_dispatch,
    heads_to_rows,
    pipeline,
    convolution,
]


def without_folders(text):
    """Names of files without their folders, which are those of whoever made the module."""
    here = str(pathlib.Path(__file__).resolve().parent) + "/"
    packages = str(pathlib.Path(jax.__file__).resolve().parent.parent) + "/"
    return text.replace(here, "").replace(packages, "")


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    costs = {"jax": jax.__version__, "modules": {}}
    for make in MODULES:
        shutil.rmtree(DUMPS)
        function, arguments = make()
        compiled = function.lower(*arguments).compile()
        (dump,) = pathlib.Path(DUMPS).rglob("*after_optimizations.txt")
        header = f"// {make.__name__}: {make.__doc__}\n// Dumped by JAX {jax.__version__} on eight "
        header += "forced host devices (tests/hlo/make_modules.py).\n"
        (out / f"{make.__name__}.txt").write_text(header + without_folders(dump.read_text()))
        analysis = compiled.cost_analysis()
        costs["modules"][make.__name__] = {
            key: analysis[key] for key in ("flops", "transcendentals", "bytes accessed") if key in analysis
        }
    (out / "costs.json").write_text(json.dumps(costs, indent=2) + "\n")
    shutil.rmtree(DUMPS)


if __name__ == "__main__":
    main()
