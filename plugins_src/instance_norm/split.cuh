// The kernels for planes that do not fit on chip: statistics of parts, their combination, and a second read.
#pragma once

#include "common/retention.cuh"
#include "instance_norm/planes.cuh"

namespace trtconv::instance_norm
{
inline constexpr int32_t kSplitThreads = 256;

// First read: a block's part of a plane to its moments.
template <typename T>
__global__ void __launch_bounds__(kSplitThreads, 3)
    splitMoments(T const* __restrict__ x, Moments* __restrict__ moments, Plane const p)
{
    __shared__ Moments warps[32];
    letLaterBegin();
    int32_t const index = static_cast<int32_t>(blockIdx.x % p.parts);
    Part<T> const part(x + (blockIdx.x / p.parts) * p.area + index * p.part, p.valuesIn(index));
    Held<T> held(part);
    held.template takeGlobal<Lines::kPlain>(part);
    Moments const own = blockMoments(held.warpMoments(part), warps);
    if (threadIdx.x == 0)
    {
        moments[blockIdx.x] = own;
    }
}

// The moments of a plane's `parts` parts, for every thread of a block of kSplitThreads.
__device__ __forceinline__ Moments blockCombine(Moments const* row, int32_t parts)
{
    constexpr int32_t warps = kSplitThreads / 32;
    __shared__ Moments shared[warps];
    auto const me = static_cast<int32_t>(threadIdx.x);
    Moments const own = combineLanes(gather(RowReader{row}, parts, me, kSplitThreads));
    if (me % 32 == 0)
    {
        shared[me / 32] = own;
    }
    __syncthreads();
    return combine(RowReader{shared}, warps);
}

// Between the reads: a block to a plane. What another kernel of the chain wrote is not __restrict__ here and below: the
// compiler might read it before the wait.
__global__ void __launch_bounds__(kSplitThreads) splitCombine(Moments const* moments, Affine* affine, Plane const p)
{
    letLaterBegin();
    waitForEarlier();
    Moments const all = blockCombine(moments + static_cast<int64_t>(blockIdx.x) * p.parts, p.parts);
    if (threadIdx.x == 0)
    {
        affine[blockIdx.x] = p.affine(all, blockIdx.x);
    }
}

// Second read: the part's values out. The parts that were read last come first, since L2 still has them. COMBINES: each
// block combines its plane's moments while it waits for x.
template <typename T, bool COMBINES>
__global__ void __launch_bounds__(kSplitThreads, 3) splitApply(T const* __restrict__ x, T* __restrict__ y,
    Moments const* moments, Affine const* affine, Plane const p)
{
    int64_t const block = gridDim.x - 1 - static_cast<int64_t>(blockIdx.x);
    int64_t const plane = block / p.parts;
    int32_t const index = static_cast<int32_t>(block % p.parts);
    int64_t const at = plane * p.area + index * p.part;
    Part<T> const part(x + at, p.valuesIn(index));
    Held<T> held(part);
    held.template takeGlobal<Lines::kStay>(part);
    Affine scaling;
    if constexpr (COMBINES)
    {
        int64_t const channel = plane % p.channels;
        float const scale = parameter(p.scale, p.parameterType, channel);
        float const bias = parameter(p.bias, p.parameterType, channel);
        waitForEarlier();
        scaling = affineOf(blockCombine(moments + plane * p.parts, p.parts), p.epsilon, scale, bias);
    }
    else
    {
        waitForEarlier();
        scaling = affine[plane];
    }
    held.write(part, y + at, scaling, p.relu);
}
} // namespace trtconv::instance_norm
