// The files of built-in algorithms, a line each; included several times, hence no guard. For each
// NAME there is a function `std::vector<TemplateInfo> NAME_templates()`, the table of a file.
// Behind it: where the idea comes from; "": the file says all that there is.
HEMIOLA_TEMPLATES(direct, "")
HEMIOLA_TEMPLATES(ring, "NVIDIA/nccl, src/device")
HEMIOLA_TEMPLATES(shot, "vllm-project/vllm custom_all_reduce.cuh; microsoft/mscclpp")
HEMIOLA_TEMPLATES(halving, "Thakur, Rabenseifner, Gropp 2005")
HEMIOLA_TEMPLATES(tree, "Sanders, Speck, Traeff 2009")
HEMIOLA_TEMPLATES(library, "NVLS of NVIDIA/nccl")
HEMIOLA_TEMPLATES(level, "rail alignment and PXN of NVIDIA/nccl")
HEMIOLA_TEMPLATES(uneven, "MPI_Alltoallv")
HEMIOLA_TEMPLATES(gemm, "")
HEMIOLA_TEMPLATES(two_product, "")
HEMIOLA_TEMPLATES(expert, "")
HEMIOLA_TEMPLATES(sequence_gather, "FiCCO, arXiv 2512.10236")
HEMIOLA_TEMPLATES(sequence_scatter, "FiCCO, arXiv 2512.10236")
HEMIOLA_TEMPLATES(ulysses, "DeepSpeed-Ulysses, arXiv 2309.14509")
HEMIOLA_TEMPLATES(attention, "Ring Attention, arXiv 2310.01889")
HEMIOLA_TEMPLATES(synth, "the links of the machine")
