// Kernels of one launch that follow each other, the later of which may begin before the one ahead of it has ended.
#pragma once

#include "common/device.h"

#include <cuda_runtime.h>

namespace trtconv
{
// Whether kernels of a chain may begin before the one ahead of them ends: code for compute capability 9.0, which holds the
// wait, and a driver that captures such launches in graphs.
template <typename Kernel>
bool mayChain([[maybe_unused]] Kernel kernel, [[maybe_unused]] Device const& device)
{
#if CUDART_VERSION >= 12030
    int32_t driver = 0;
    cudaFuncAttributes attributes{};
    return device.major >= 9 && cudaDriverGetVersion(&driver) == cudaSuccess && driver >= 12030
        && cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess && attributes.ptxVersion >= 90;
#else
    return false;
#endif
}

template <typename... Parameters, typename... Arguments>
cudaError_t launchLater(bool chained, void (*kernel)(Parameters...), dim3 blocks, int64_t threads, cudaStream_t stream,
    Arguments const&... arguments)
{
    cudaLaunchAttribute attribute{};
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = dim3(static_cast<uint32_t>(threads));
    config.stream = stream;
    config.attrs = &attribute;
#if CUDART_VERSION >= 12030
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.numAttrs = chained ? 1 : 0;
#else
    (void) chained;
#endif
    return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}
} // namespace trtconv
