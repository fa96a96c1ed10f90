"""What serial leaves: the closed form, then the simulator's collective and product."""
from . import common

# Name, [M, N, K] of the product of one GPU, what ficco-like arithmetic gives by 46 GB/s and 600 TFLOP/s (published figure or None).
SCENARIOS = [("405B QKV", (8192, 2304, 16384)), ("70B QKV", (8192, 1280, 8192)), ("70B up", (8192, 3584, 8192)),
             ("405B up", (8192, 6656, 16384))]
LINK, FLOPS, GPUS, BYTES = 46e9, 600e12, 8, 2


def closed(shape):
    """Times of the all-gather and of the product in femtoseconds, on a full mesh without any loss."""
    m, n, k = shape
    return 1e15 * BYTES * m * k / GPUS / LINK, 1e15 * 2 * m * n * k / FLOPS


def left(collective, product):
    """What ideal overlap gains over one after the other."""
    return (collective + product) / max(collective, product)


def run():
    rows = []
    for name, shape in SCENARIOS:
        collective, product = closed(shape)
        found = common.explore("ag-gemm", shape, "--losses", "none", "--top", "0", "--fluid", "1")
        serial = found["serial"]
        ideal = max(serial["collective_fs"], serial["product_fs"])
        rows.append([name, " x ".join(map(str, shape)), f"{common.ms(collective)}, {common.ms(product)}",
                     f"{left(collective, product):.2f}",
                     f"{common.ms(serial['collective_fs'])}, {common.ms(serial['product_fs'])}",
                     f"{left(serial['collective_fs'], serial['product_fs']):.2f}", f"{serial['time_fs'] / ideal:.2f}",
                     f"{serial['time_fs'] / (serial['collective_fs'] + serial['product_fs']):.3f}"])
    common.table(["scenario", "product of a GPU", "closed form: all-gather, product (ms)", "serial / ideal",
                  "simulated: all-gather, product (ms)", "sum / ideal", "serial / ideal", "serial / sum"], rows)
