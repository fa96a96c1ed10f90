// The files of kernels, a line for each table; included several times, hence no guard. For each
// NAME there is a function `std::vector<KernelInfo> NAME_kernels()`.
HEMIOLA_KERNELS(vllm)
HEMIOLA_KERNELS(trtllm)
HEMIOLA_KERNELS(mscclpp)
HEMIOLA_KERNELS(nccl)
HEMIOLA_KERNELS(auto)
HEMIOLA_KERNELS(mscclpp_port)
HEMIOLA_KERNELS(micro_memory)
HEMIOLA_KERNELS(micro_sync)
HEMIOLA_KERNELS(gemv_ar)
HEMIOLA_KERNELS(gemm_a2a)
HEMIOLA_KERNELS(embedding_a2a)
