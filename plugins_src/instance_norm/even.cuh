// Planes that a warp holds exactly, with packs of 16 bytes: no predicates, one pass of shuffles, and the channel's parameters
// on their way together with x.
#pragma once

#include "common/retention.cuh"
#include "instance_norm/planes.cuh"

namespace trtconv::instance_norm
{
// The mean of values - shift and the sum of squared differences from that mean, over a power of two of values.
struct Spread
{
    float mean;
    float squares;
};

// Of the packs that a lane holds, seen from `shift`. The squares are of differences from the lane's own first value, which
// is one of the plane's: what is lost in them is at most as many last places as the lane has values.
template <typename T, int V, int ITEMS>
__device__ __forceinline__ Spread laneSpread(Pack<T, V> const (&held)[ITEMS], float shift)
{
    float const own = toFloat(held[0].value[0]);
    float total = 0.0F;
    float squares = 0.0F;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        float values[V];
        unpack(held[i], values);
#pragma unroll
        for (int v = 0; v < V; ++v)
        {
            float const away = values[v] - own;
            total += away;
            squares = fmaf(away, away, squares);
        }
    }
    float const mean = total * (1.0F / static_cast<float>(V * ITEMS));
    return {(own - shift) + mean, fmaxf(fmaf(-total, mean, squares), 0.0F)};
}

// Makes the compiler convert 16-bit values once more where they are used again, rather than keep twice their size in
// registers. `zero` is zero, which only the caller knows.
template <typename T, int V, int ITEMS>
__device__ __forceinline__ void forgetConverted(Pack<T, V> (&held)[ITEMS], uint32_t zero)
{
    if constexpr (sizeof(T) == 2)
    {
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
        {
#pragma unroll
            for (int w = 0; w < V / 2; ++w)
            {
                reinterpret_cast<uint32_t*>(&held[i])[w] ^= zero;
            }
        }
    }
}

// Of all lanes together, of which each holds `count` values: pairs of equal size, merged without a division.
__device__ __forceinline__ Spread mergeLanes(Spread s, float count)
{
#pragma unroll
    for (int step = 1; step < 32; step *= 2)
    {
        float const mean = __shfl_xor_sync(0xffffffffU, s.mean, step);
        float const squares = __shfl_xor_sync(0xffffffffU, s.squares, step);
        float const away = mean - s.mean;
        s.mean = 0.5F * (s.mean + mean);
        s.squares = fmaf(away * away, 0.5F * count, s.squares + squares);
        count *= 2.0F;
    }
    return s;
}

// A plane of 32 * ITEMS * V values to a warp, ITEMS packs to a lane. `p.planes` is under 2^31.
template <typename T, int ITEMS>
__global__ void __launch_bounds__(kWarpThreads) evenPlanes(T const* __restrict__ x, T* __restrict__ y, Plane const p)
{
    constexpr int V = kVectorBytes / static_cast<int>(sizeof(T));
    constexpr int32_t area = 32 * ITEMS * V;
    int64_t const plane = static_cast<int64_t>(blockIdx.x) * (kWarpThreads / 32) + threadIdx.x / 32;
    if (plane >= p.planes)
    {
        return; // whole warps leave
    }
    int32_t const lane = threadIdx.x % 32;
    T const* const from = x + plane * area;
    Pack<T, V> held[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        held[i] = loadLines<Lines::kPlain>(reinterpret_cast<Pack<T, V> const*>(from + (i * 32 + lane) * V), 0);
    }
    uint32_t const channel = static_cast<uint32_t>(plane) % static_cast<uint32_t>(p.channels);
    float const scale = parameter(p.scale, p.parameterType, channel);
    float const bias = parameter(p.bias, p.parameterType, channel);
    // Any value of the plane lies within sqrt(area) deviations of the mean, so that differences from it lose nothing.
    float const shift = __shfl_sync(0xffffffffU, toFloat(held[0].value[0]), 0);
    Spread const spread = mergeLanes(laneSpread(held, shift), static_cast<float>(V * ITEMS));
    Affine const affine
        = affineOf({shift, spread.mean, spread.squares, static_cast<float>(area)}, p.epsilon, scale, bias);
    forgetConverted(held, static_cast<uint32_t>(p.planes >> 32));
    T* const to = y + plane * area;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        store<T, V>(to + (i * 32 + lane) * V, apply(held[i], affine, p.relu));
    }
}
} // namespace trtconv::instance_norm
