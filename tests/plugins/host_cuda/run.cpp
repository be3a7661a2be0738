// One entry of plugins_src/aot, as a function that runs it on the CPU.
#include "cuda_runtime.h"

#include TRTCONV_FILE

namespace trtconv::instance_norm
{
thread_local unsigned char memory[64 * 1024] __attribute__((aligned(128)));
}

namespace trtconv::depthwise_conv_layer_norm
{
thread_local unsigned char memory[64 * 1024] __attribute__((aligned(128)));
}

extern "C" void run(uint32_t grid, uint32_t threads, void** values)
{
    host_cuda::launch(&TRTCONV_ENTRY, grid, threads, values);
}
