"""The pairs of the ladder: an independent product beside an all-gather or an all-to-all, on eight MI300X.

Written down and committed before the first was simulated. ConCCL (arXiv 2412.14335) does not list its pairs; the sizes that
its names have (896M, 3.25G, 13G) are those of weights: 2 x 28672 x 8192 of Llama 3 70B in bf16 are 896 MiB, 2 x 53248 x 16384 of
Llama 3.1 405B 3.25 GiB, four layers of the latter 13 GiB. 128 MiB are 8192 tokens of 70B. Products are those of one GPU: whole ones
where weights are gathered (FSDP), an eighth of the columns (tensor parallelism) or of the tokens (experts) beside 128 MiB.
The sizes of products were chosen so that by 600 TFLOP/s and 46 GB/s per link they take 0.3 to 3 times as long as the collective.
"""

# Name of the product, [m, n, k] of one GPU, collective, its size.
PAIRS = [
    ("70B qkv tp8, 8192 tokens", (8192, 1280, 8192), "all-gather", "128MiB"),
    ("70B up tp8, 8192 tokens", (8192, 3584, 8192), "all-gather", "128MiB"),
    ("8x7B up tp8, 8192 tokens", (8192, 1792, 4096), "all-gather", "128MiB"),
    ("70B qkv, 8192 tokens", (8192, 10240, 8192), "all-gather", "896MiB"),
    ("70B up, 8192 tokens", (8192, 28672, 8192), "all-gather", "896MiB"),
    ("8x7B gate+up, 4096 tokens", (4096, 28672, 4096), "all-gather", "896MiB"),
    ("405B qkv, 8192 tokens", (8192, 18432, 16384), "all-gather", "3.25GiB"),
    ("405B up, 8192 tokens", (8192, 53248, 16384), "all-gather", "3.25GiB"),
    ("70B down, 8192 tokens", (8192, 8192, 28672), "all-gather", "3.25GiB"),
    ("405B gate+up, 8192 tokens", (8192, 106496, 16384), "all-gather", "13GiB"),
    ("405B down, 8192 tokens", (8192, 16384, 53248), "all-gather", "13GiB"),
    ("70B gate+up, 8192 tokens", (8192, 57344, 8192), "all-gather", "13GiB"),
    ("8x7B expert gate+up, 2048 tokens", (2048, 28672, 4096), "all-to-all", "128MiB"),
    ("8x7B expert down, 2048 tokens", (2048, 4096, 14336), "all-to-all", "128MiB"),
    ("70B out-proj tp8, 8192 tokens", (8192, 8192, 1024), "all-to-all", "128MiB"),
    ("8x22B expert gate+up, 4096 tokens", (4096, 32768, 6144), "all-to-all", "896MiB"),
    ("8x22B expert down, 4096 tokens", (4096, 6144, 16384), "all-to-all", "896MiB"),
    ("70B down, 8192 tokens", (8192, 8192, 28672), "all-to-all", "896MiB"),
    ("405B out-proj, 8192 tokens", (8192, 16384, 16384), "all-to-all", "3.25GiB"),
    ("70B gate+up, 8192 tokens", (8192, 57344, 8192), "all-to-all", "3.25GiB"),
    ("8x22B expert gate+up, 16384 tokens", (16384, 32768, 6144), "all-to-all", "3.25GiB"),
    ("405B gate+up, 8192 tokens", (8192, 106496, 16384), "all-to-all", "13GiB"),
    ("405B up, 8192 tokens", (8192, 53248, 16384), "all-to-all", "13GiB"),
    ("70B gate+up, 16384 tokens", (16384, 57344, 8192), "all-to-all", "13GiB"),
]
