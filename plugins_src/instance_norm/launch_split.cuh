// Launches for planes that are read twice.
#pragma once

#include "instance_norm/launch.cuh"
#include "instance_norm/split.cuh"

namespace trtconv::instance_norm
{
namespace
{
// Bytes of a part that one block of the split kernels takes.
constexpr int64_t kSplitBytes = static_cast<int64_t>(kSplitThreads) * kItems * kVectorBytes - kVectorBytes;

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
cudaError_t launchLater(bool chained, void (*kernel)(Parameters...), int64_t blocks, cudaStream_t stream,
    Arguments const&... arguments)
{
    cudaLaunchAttribute attribute{};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<uint32_t>(blocks));
    config.blockDim = dim3(kSplitThreads);
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

// How many parts the second read of kSplitFused combines: every one of its blocks goes over all its plane's moments.
constexpr int64_t kMostCombined = 1024;

// COMBINES: the second read combines the moments of its plane; otherwise a kernel between the reads does.
template <typename T, bool COMBINES>
cudaError_t launchReads(Launch<T> const& l)
{
    Plane p = l.plane;
    p.part = kSplitBytes / static_cast<int64_t>(sizeof(T));
    int64_t const parts = ceilDiv(p.area, p.part);
    int64_t const blocks = p.planes * parts;
    if (blocks > kMaxGrid || (COMBINES && parts > kMostCombined))
    {
        return cudaErrorInvalidConfiguration;
    }
    p.parts = static_cast<int32_t>(parts);
    auto* const moments = static_cast<Moments*>(l.workspace);
    auto* const affine = reinterpret_cast<Affine*>(moments + blocks);
    auto const second = splitApply<T, COMBINES>;
    bool const chained = mayChain(second, l.device);
    cudaError_t status = launchLater(false, splitMoments<T>, blocks, l.stream, l.x, moments, p);
    if (status == cudaSuccess && !COMBINES)
    {
        status = launchLater(chained, splitCombine, p.planes, l.stream, moments, affine, p);
    }
    return status != cudaSuccess ? status : launchLater(chained, second, blocks, l.stream, l.x, l.y, moments, affine, p);
}
} // namespace
} // namespace trtconv::instance_norm
