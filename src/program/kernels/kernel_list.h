// The files of kernels, a line for each table; included several times, hence no guard. For each
// NAME there is a function `std::vector<KernelInfo> NAME_kernels()`. Behind it: its source.
HEMIOLA_KERNELS(vllm, "vllm-project/vllm and sgl-project/sglang, custom_all_reduce.cuh")
HEMIOLA_KERNELS(trtllm, "TensorRT-LLM, allReduceFusionKernels.cu, and flashinfer-ai/flashinfer")
HEMIOLA_KERNELS(mscclpp, "microsoft/mscclpp, tutorial 03-memory-channel")
HEMIOLA_KERNELS(nccl, "NVIDIA/nccl 2.30, src/device and src/graph")
HEMIOLA_KERNELS(auto, "the library's tuner, and vllm-project/vllm")
HEMIOLA_KERNELS(mscclpp_port, "microsoft/mscclpp, tutorial 04-port-channel")
HEMIOLA_KERNELS(micro_memory, "NVIDIA/nvbandwidth; docs/kernels.md")
HEMIOLA_KERNELS(micro_sync, "docs/kernels.md")
HEMIOLA_KERNELS(gemv_ar, "arXiv 2305.06942")
HEMIOLA_KERNELS(gemm_a2a, "arXiv 2305.06942")
HEMIOLA_KERNELS(embedding_a2a, "arXiv 2305.06942")
