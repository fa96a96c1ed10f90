import hemiola_rt

RANKS = RANKS
KERNEL = hemiola_rt.Kernel()


def setup(rt):
    pass


def run(rt, t):
    pass
