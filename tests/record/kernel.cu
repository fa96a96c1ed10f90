// A kernel that records its flags, to be compiled by whatever CUDA or HIP compiler there is.
#if defined(__HIPCC__)
#include <hip/hip_runtime.h>
#elif defined(HEMIOLA_STUB_CUDA)
// clang without a CUDA toolkit: what the header and the kernel need of one.
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
__device__ unsigned int atomicAdd(unsigned int* to, unsigned int value) {
  return __nvvm_atom_add_gen_i((int*)to, (int)value);
}
__device__ void __threadfence_system() { __nvvm_membar_sys(); }
#endif

#include "hemiola/record.h"

__global__ void set_flags(hemiola_recorder recorder, volatile long long* flags, unsigned int peer,
                          long long epoch) {
  hemiola_record_write(recorder, peer, 0, 8 * peer, 8, epoch);
  __threadfence_system();
  flags[peer] = epoch;
}
