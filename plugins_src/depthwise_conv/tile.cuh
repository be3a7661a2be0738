// A thread computes ROWS x COLUMNS neighbouring positions of V neighbouring channels, with the kernels of its channels and
// all sums in registers. It reads each position that they touch once; neighbouring threads have neighbouring channels.
#pragma once

#include "common/gelu.cuh"
#include "common/pack.cuh"

namespace trtconv::depthwise_conv
{
inline constexpr int32_t kSize = 3;

struct Image
{
    int32_t height;
    int32_t width;
    int32_t channels;
    // Threads that have the channels of a tile, and tiles beside and above one another.
    uint32_t lanes;
    uint32_t across;
    uint32_t down;
    uint32_t threads;
};

template <typename T, int V>
__device__ __forceinline__ Pack<T, V> loadPack(T const* from)
{
    Pack<T, V> pack;
    if constexpr (sizeof(T) * V == 16)
    {
        *reinterpret_cast<uint4*>(&pack) = __ldg(reinterpret_cast<uint4 const*>(from));
    }
    else
    {
        static_assert(V == 1, "one element, or 16 bytes");
        pack.value[0] = from[0];
    }
    return pack;
}

template <typename T, int V, int ROWS, int COLUMNS, bool GELU>
__device__ __forceinline__ void convolveTile(T const* __restrict__ x, T const* __restrict__ weight,
    T const* __restrict__ bias, T* __restrict__ y, Image const& p)
{
    uint32_t const thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= p.threads)
    {
        return;
    }
    uint32_t const tile = thread / p.lanes;
    int32_t const channel = static_cast<int32_t>(thread - tile * p.lanes) * V;
    uint32_t const line = tile / p.across;
    int32_t const left = static_cast<int32_t>(tile - line * p.across) * COLUMNS;
    uint32_t const image = line / p.down;
    int32_t const top = static_cast<int32_t>(line - image * p.down) * ROWS;
    int64_t const begin = int64_t{image} * p.height * p.width * p.channels + channel;

    Pack<T, V> taps[kSize][kSize];
#pragma unroll
    for (int k = 0; k < kSize * kSize; ++k)
    {
        taps[k / kSize][k % kSize] = loadPack<T, V>(weight + k * p.channels + channel);
    }
    float sums[ROWS][COLUMNS][V];
    float biases[V];
    unpack(loadPack<T, V>(bias + channel), biases);
#pragma unroll
    for (int i = 0; i < ROWS * COLUMNS * V; ++i)
    {
        sums[i / V / COLUMNS][i / V % COLUMNS][i % V] = biases[i % V];
    }
    constexpr int span = COLUMNS + kSize - 1;
#pragma unroll
    for (int r = 0; r < ROWS + kSize - 1; ++r)
    {
        int32_t const row = top + r - 1;
        bool const inside = row >= 0 && row < p.height;
        T const* const from = x + begin + (int64_t{row} * p.width + left - 1) * p.channels;
        float values[span][V];
#pragma unroll
        for (int i = 0; i < span; ++i)
        {
            Pack<T, V> pack = {};
            if (inside && left + i - 1 >= 0 && left + i - 1 < p.width)
            {
                pack = loadPack<T, V>(from + int64_t{i} * p.channels);
            }
            unpack(pack, values[i]);
        }
#pragma unroll
        for (int k = 0; k < kSize; ++k)
        {
            int const o = r - k;
            if (o >= 0 && o < ROWS)
            {
#pragma unroll
                for (int j = 0; j < kSize; ++j)
                {
                    float tap[V];
                    unpack(taps[k][j], tap);
#pragma unroll
                    for (int i = 0; i < COLUMNS; ++i)
                    {
#pragma unroll
                        for (int v = 0; v < V; ++v)
                        {
                            sums[o < 0 ? 0 : o][i][v] = fmaf(values[i + j][v], tap[v], sums[o < 0 ? 0 : o][i][v]);
                        }
                    }
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS * COLUMNS; ++i)
    {
        int32_t const row = top + i / COLUMNS;
        int32_t const column = left + i % COLUMNS;
        if (row < p.height && column < p.width)
        {
            float values[V];
#pragma unroll
            for (int v = 0; v < V; ++v)
            {
                float const sum = sums[i / COLUMNS][i % COLUMNS][v];
                values[v] = GELU ? gelu<T>(sum) : sum;
            }
            store<T, V>(y + begin + (int64_t{row} * p.width + column) * p.channels, repack<T>(values));
        }
    }
}
} // namespace trtconv::depthwise_conv
