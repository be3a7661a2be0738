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

// COMBINES: the second read combines the moments of its plane; otherwise a kernel between the reads does, with a block to
// a plane where BLOCK, else a warp. CHAINED: see mayChain.
template <typename T, Hint HINT, bool COMBINES, bool BLOCK, bool CHAINED>
cudaError_t launchReads(Launch<T> const& l, Plane p, int64_t kept)
{
    // Every block of the second read goes over all its plane's moments.
    constexpr int64_t mostCombined = 1024;
    p.part = kSplitBytes / static_cast<int64_t>(sizeof(T));
    int64_t const parts = ceilDiv(p.area, p.part);
    int64_t const blocks = p.planes * parts;
    if (blocks > kMaxGrid || (COMBINES && parts > mostCombined))
    {
        return cudaErrorInvalidConfiguration;
    }
    p.parts = static_cast<int32_t>(parts);
    p.kept = static_cast<uint32_t>(kept / kSplitBytes);
    auto* const moments = static_cast<Moments*>(l.workspace);
    auto* const affine = reinterpret_cast<Affine*>(moments + blocks);
    auto const second = splitApply<T, HINT, COMBINES>;
    bool const chained = CHAINED && mayChain(second, l.device);
    splitMoments<T, HINT><<<static_cast<uint32_t>(blocks), kSplitThreads, 0, l.stream>>>(l.x, moments, p);
    cudaError_t status = cudaGetLastError();
    if (status == cudaSuccess && !COMBINES && BLOCK)
    {
        status = launchLater(chained, splitCombineBlock, p.planes, l.stream, moments, affine, p);
    }
    else if (status == cudaSuccess && !COMBINES)
    {
        splitCombine<<<static_cast<uint32_t>(p.planes), 32, 0, l.stream>>>(moments, affine, p);
        status = cudaGetLastError();
    }
    return status != cudaSuccess ? status : launchLater(chained, second, blocks, l.stream, l.x, l.y, moments, affine, p);
}

// The same for groups of planes of up to `most` bytes, one group after another, in one chain of kernels.
template <typename T, Hint HINT>
cudaError_t launchGroups(Launch<T> const& l, int64_t most)
{
    constexpr int64_t mostParts = 1024;
    constexpr int64_t mostGroups = 256;
    Plane p = l.plane;
    p.part = kSplitBytes / static_cast<int64_t>(sizeof(T));
    int64_t const parts = ceilDiv(p.area, p.part);
    int64_t const bytes = p.area * static_cast<int64_t>(sizeof(T));
    int64_t const group = bytes < most ? most / bytes : 1;
    auto const second = splitApply<T, HINT, true>;
    if (parts > mostParts || bytes > most || ceilDiv(l.plane.planes, group) > mostGroups || !mayChain(second, l.device))
    {
        return cudaErrorInvalidConfiguration;
    }
    p.parts = static_cast<int32_t>(parts);
    cudaError_t status = cudaSuccess;
    for (p.begin = 0; p.begin < l.plane.planes && status == cudaSuccess; p.begin += group)
    {
        int64_t const rest = l.plane.planes - p.begin;
        p.planes = rest < group ? rest : group;
        int64_t const blocks = p.planes * parts;
        p.kept = static_cast<uint32_t>(blocks);
        auto* const moments = static_cast<Moments*>(l.workspace) + p.begin * parts;
        T const* const x = l.x + p.begin * p.area;
        // The first of the chain begins when all that was launched before has ended.
        status = launchLater(p.begin > 0, splitMoments<T, HINT>, blocks, l.stream, x, moments, p);
        if (status == cudaSuccess)
        {
            status = launchLater(true, second, blocks, l.stream, x, l.y + p.begin * p.area, moments, nullptr, p);
        }
    }
    return status;
}

template <typename T>
cudaError_t launchSplit(Launch<T> const& l, Route route)
{
    int64_t const cache = l.device.cacheBytes;
    switch (route)
    {
    case Route::kSplitHinted: return launchReads<T, Hint::kEarlyLeave, false, false, false>(l, l.plane, cache / 10 * 7);
    case Route::kSplitBlock: return launchReads<T, Hint::kNone, false, true, false>(l, l.plane, 0);
    case Route::kSplitChained: return launchReads<T, Hint::kNone, false, true, true>(l, l.plane, 0);
    case Route::kSplitFused: return launchReads<T, Hint::kNone, true, true, true>(l, l.plane, 0);
    case Route::kSplitGroups: return launchGroups<T, Hint::kOutLeaves>(l, cache / 10 * 4);
    case Route::kSplitGroupsStay: return launchGroups<T, Hint::kLateStay>(l, cache / 10 * 4);
    case Route::kSplitStay: return launchReads<T, Hint::kLateStay, true, true, true>(l, l.plane, cache / 10 * 4);
    case Route::kSplitOut: return launchReads<T, Hint::kOutLeaves, true, true, true>(l, l.plane, 0);
    default: return launchReads<T, Hint::kNone, false, false, false>(l, l.plane, 0);
    }
}
} // namespace
} // namespace trtconv::instance_norm
