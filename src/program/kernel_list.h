// The kernels, one line each; included several times, hence no guard. For each NAME there is a
// function `KernelInfo NAME()`.
HEMIOLA_KERNEL(all_reduce_vllm)
HEMIOLA_KERNEL(all_reduce_vllm_one_stage)
HEMIOLA_KERNEL(all_reduce_vllm_two_stage)
HEMIOLA_KERNEL(send_recv_mscclpp_put)
HEMIOLA_KERNEL(send_recv_mscclpp_get)
HEMIOLA_KERNEL(send_recv_mscclpp_packets)
