// Sums of planes in float, however x lies: an image has `splits` rows of sums, one to each of its channels.
#pragma once

#include "common/pack.cuh"
#include "common/retention.cuh"

namespace trtconv::channel_gate
{
inline constexpr int32_t kWarp = 32;
inline constexpr int32_t kThreads = 256;
// Positions that a thread of channels-last sums adds up, all of which it reads at once.
inline constexpr int32_t kPositions = 8;

struct Planes
{
    int64_t count;
    int32_t area;
};

// A plane to THREADS threads, V elements to an access.
template <typename T, int V, int THREADS, int BLOCK>
__global__ void __launch_bounds__(BLOCK) sumPlanes(T const* __restrict__ x, float* __restrict__ sums, Planes const p)
{
    __shared__ float warps[kWarp];
    letLaterBegin();
    int64_t const plane = int64_t{blockIdx.x} * (BLOCK / THREADS) + threadIdx.x / THREADS;
    auto const lane = static_cast<int32_t>(threadIdx.x) % THREADS;
    float sum = 0.0F;
    if (plane < p.count)
    {
        T const* const from = x + plane * p.area;
        for (int32_t at = lane * V; at < p.area; at += THREADS * V)
        {
            float values[V];
            unpack<T, V>(*reinterpret_cast<Pack<T, V> const*>(from + at), values);
#pragma unroll
            for (int v = 0; v < V; ++v)
            {
                sum += values[v];
            }
        }
    }
    sum = warpSum(sum);
    if constexpr (THREADS > kWarp)
    {
        if (threadIdx.x % kWarp == 0)
        {
            warps[threadIdx.x / kWarp] = sum;
        }
        __syncthreads();
        sum = warpSum(threadIdx.x < BLOCK / kWarp ? warps[threadIdx.x % kWarp] : 0.0F);
    }
    if (lane == 0 && plane < p.count)
    {
        sums[plane] = sum;
    }
}

struct Rows
{
    int32_t area;
    int32_t channels;
    int32_t pitch;
    int32_t packs;  // accesses of V channels that a position takes
    int32_t splits; // parts of an image
};

// COLUMNS threads take V channels each, and as many positions at once as fit into the block.
template <typename T, int V, int COLUMNS>
__global__ void __launch_bounds__(kThreads) sumRows(T const* __restrict__ x, float* __restrict__ sums, Rows const p)
{
    constexpr int rows = kThreads / COLUMNS;
    __shared__ float parts[rows][COLUMNS][V + 1];
    letLaterBegin();
    auto const column = static_cast<int32_t>(threadIdx.x) % COLUMNS;
    auto const row = static_cast<int32_t>(threadIdx.x) / COLUMNS;
    int32_t const pack = static_cast<int32_t>(blockIdx.x) * COLUMNS + column;
    auto const split = static_cast<int32_t>(blockIdx.y);
    int64_t const image = blockIdx.z;
    float total[V] = {};
    if (pack < p.packs)
    {
        T const* const from = x + image * p.area * p.pitch + int64_t{pack} * V;
        Pack<T, V> packs[kPositions];
#pragma unroll
        for (int i = 0; i < kPositions; ++i)
        {
            int32_t const at = split * rows * kPositions + i * rows + row;
            packs[i] = at < p.area ? *reinterpret_cast<Pack<T, V> const*>(from + int64_t{at} * p.pitch) : Pack<T, V>{};
        }
#pragma unroll
        for (int i = 0; i < kPositions; ++i)
        {
            float values[V];
            unpack<T, V>(packs[i], values);
#pragma unroll
            for (int v = 0; v < V; ++v)
            {
                total[v] += values[v];
            }
        }
    }
#pragma unroll
    for (int v = 0; v < V; ++v)
    {
        parts[row][column][v] = total[v];
    }
    __syncthreads();
    for (auto at = static_cast<int32_t>(threadIdx.x); at < COLUMNS * V; at += kThreads)
    {
        int32_t const channel = static_cast<int32_t>(blockIdx.x) * COLUMNS * V + at;
        float sum = 0.0F;
#pragma unroll
        for (int i = 0; i < rows; ++i)
        {
            sum += parts[i][at / V][at % V];
        }
        if (channel < p.channels)
        {
            sums[(image * p.splits + split) * p.channels + channel] = sum;
        }
    }
}
} // namespace trtconv::channel_gate
