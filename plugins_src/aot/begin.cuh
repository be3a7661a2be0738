// The library's kernels, included between begin.cuh and end.cuh, become functions that one entry point calls: its
// parameters are pointers and 32-bit numbers, which is all that TensorRT passes to a kernel that lies in an engine.
//
// Who compiles an entry defines TRTCONV_ENTRY (its name), TRTCONV_ELEMENT (the tensors' type) and what else the entry's
// first lines say. Tensors begin at a multiple of 16 bytes, as TensorRT asks of those that it is given.
#include "common/pack.cuh"

#undef __global__
#undef __launch_bounds__
#define __global__ __device__ __forceinline__
#define __launch_bounds__(...)
