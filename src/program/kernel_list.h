// The kernels, one line each; included several times, hence no guard. For each NAME there is a
// function `KernelInfo NAME()`.
HEMIOLA_KERNEL(all_reduce_vllm)
HEMIOLA_KERNEL(all_reduce_vllm_one_stage)
HEMIOLA_KERNEL(all_reduce_vllm_two_stage)
HEMIOLA_KERNEL(all_reduce_nccl)
HEMIOLA_KERNEL(all_gather_nccl)
HEMIOLA_KERNEL(reduce_scatter_nccl)
HEMIOLA_KERNEL(broadcast_nccl)
HEMIOLA_KERNEL(reduce_nccl)
HEMIOLA_KERNEL(all_to_all_nccl)
HEMIOLA_KERNEL(auto_nccl)
