// A thread computes ROWS x COLUMNS neighbouring positions of V neighbouring channels. It goes down the rows of x, each of
// which it reads once and uses for all the rows of the result that it touches; sums stay in registers. A group of threads
// has all channels of its positions, so that the normalisation needs no more than the group's moments.
#pragma once

#include "depthwise_conv_layer_norm/moments.cuh"

namespace trtconv::depthwise_conv_layer_norm
{
struct Image
{
    int32_t height;
    int32_t width;
    int32_t channels;
    // Threads of a group, and groups of a block.
    int32_t lanes;
    int32_t groups;
    // Tiles beside one another, one above the other, and in all.
    int32_t across;
    int32_t down;
    uint32_t tiles;
    float epsilon;
};

template <typename T, int V>
__device__ __forceinline__ Pack<T, V> loadPack(T const* from)
{
    Pack<T, V> pack;
    constexpr int bytes = sizeof(T) * V;
    if constexpr (bytes == 16)
    {
        *reinterpret_cast<uint4*>(&pack) = __ldg(reinterpret_cast<uint4 const*>(from));
    }
    else if constexpr (bytes == 8)
    {
        *reinterpret_cast<uint2*>(&pack) = __ldg(reinterpret_cast<uint2 const*>(from));
    }
    else if constexpr (bytes == 4)
    {
        *reinterpret_cast<uint32_t*>(&pack) = __ldg(reinterpret_cast<uint32_t const*>(from));
    }
    else
    {
        *reinterpret_cast<uint16_t*>(&pack) = __ldg(reinterpret_cast<uint16_t const*>(from));
    }
    return pack;
}

template <typename T, int V, int SIZE>
__device__ __forceinline__ void loadTaps(Pack<T, V> (&taps)[SIZE], T const* weight, int32_t row, int32_t channels)
{
#pragma unroll
    for (int k = 0; k < SIZE; ++k)
    {
        taps[k] = loadPack<T, V>(weight + (row * SIZE + k) * channels);
    }
}

// One row of x, zero where it lies outside; bit i of `columns` says that column i lies inside.
template <typename T, int V, int N>
__device__ __forceinline__ void loadRow(Pack<T, V> (&row)[N], T const* x, int32_t channels, uint32_t columns)
{
#pragma unroll
    for (int i = 0; i < N; ++i)
    {
        row[i] = {};
        if ((columns >> i & 1U) != 0)
        {
            row[i] = loadPack<T, V>(x + i * channels);
        }
    }
}

template <typename T, int V, int SIZE, int COLUMNS>
__device__ __forceinline__ void addProducts(
    float (&sums)[COLUMNS][V], float const (&row)[COLUMNS + SIZE - 1][V], Pack<T, V> const (&taps)[SIZE])
{
#pragma unroll
    for (int k = 0; k < SIZE; ++k)
    {
        float tap[V];
        unpack(taps[k], tap);
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i)
        {
#pragma unroll
            for (int v = 0; v < V; ++v)
            {
                sums[i][v] = fmaf(row[i + k][v], tap[v], sums[i][v]);
            }
        }
    }
}

// The convolution's sums of one tile. `x` and `weight` begin at the thread's channels, `x` at the image; `top` and `left` are
// the tile's first position less the padding.
template <typename T, int SIZE, int V, int ROWS, int COLUMNS>
__device__ __forceinline__ void convolve(float (&sums)[ROWS][COLUMNS][V], T const* x, T const* weight, int32_t top,
    int32_t left, bool active, Image const& p)
{
    constexpr int span = COLUMNS + SIZE - 1;
    uint32_t columns = 0;
#pragma unroll
    for (int i = 0; i < span; ++i)
    {
        columns |= static_cast<uint32_t>(left + i >= 0 && left + i < p.width) << i;
    }
    columns = active ? columns : 0;
    int64_t const step = int64_t{p.width} * p.channels;
    T const* from = x + top * step + int64_t{left} * p.channels;
    auto const inside = [&](int32_t row) { return top + row >= 0 && top + row < p.height ? columns : 0U; };
    // The next row and the next taps are on their way while this row is used.
    Pack<T, V> next[span];
    Pack<T, V> nextTaps[SIZE];
    loadRow(next, from, p.channels, inside(0));
    loadTaps(nextTaps, weight, 0, p.channels);
#pragma unroll 1
    for (int32_t r = 0; r < ROWS + SIZE - 1; ++r)
    {
        float row[span][V];
#pragma unroll
        for (int i = 0; i < span; ++i)
        {
            unpack(next[i], row[i]);
        }
        Pack<T, V> taps[SIZE];
#pragma unroll
        for (int k = 0; k < SIZE; ++k)
        {
            taps[k] = nextTaps[k];
        }
        from += step;
        if (r + 1 < ROWS + SIZE - 1)
        {
            loadRow(next, from, p.channels, inside(r + 1));
        }
        if (r + 1 < SIZE)
        {
            loadTaps(nextTaps, weight, r + 1, p.channels);
        }
        if (r < SIZE)
        {
            addProducts<T, V, SIZE, COLUMNS>(sums[0], row, taps);
        }
#pragma unroll
        for (int o = 1; o < ROWS; ++o)
        {
            if (r >= o && r - o < SIZE)
            {
                loadTaps(taps, weight, r - o, p.channels);
                addProducts<T, V, SIZE, COLUMNS>(sums[o], row, taps);
            }
        }
    }
}

template <typename T, int SIZE, int V, int ROWS, int COLUMNS, int THREADS>
__global__ void __launch_bounds__(THREADS) tiles(T const* __restrict__ x, T const* __restrict__ weight,
    T const* __restrict__ bias, T const* __restrict__ scale, T const* __restrict__ shift, T* __restrict__ y, Image const p)
{
    int32_t const group = static_cast<int32_t>(threadIdx.x) / p.lanes;
    int32_t const channel = (static_cast<int32_t>(threadIdx.x) - group * p.lanes) * V;
    uint32_t const tile = blockIdx.x * p.groups + group;
    bool const active = group < p.groups && tile < p.tiles;
    uint32_t const line = tile / p.across;
    int32_t const left = static_cast<int32_t>(tile - line * p.across) * COLUMNS;
    int32_t const top = static_cast<int32_t>(line % p.down) * ROWS;
    int64_t const image = int64_t{line / p.down} * p.height * p.width * p.channels + channel;

    float sums[ROWS][COLUMNS][V];
    Pack<T, V> const scales = loadPack<T, V>(scale + channel);
    Pack<T, V> const shifts = loadPack<T, V>(shift + channel);
    float biases[V];
    unpack(loadPack<T, V>(bias + channel), biases);
#pragma unroll
    for (int i = 0; i < ROWS * COLUMNS * V; ++i)
    {
        sums[i / V / COLUMNS][i / V % COLUMNS][i % V] = biases[i % V];
    }
    convolve<T, SIZE, V, ROWS, COLUMNS>(
        sums, x + image, weight + channel, top - SIZE / 2, left - SIZE / 2, active, p);

    Moments const* const moments = groupMoments<V, ROWS * COLUMNS>(
        *reinterpret_cast<float(*)[ROWS * COLUMNS][V]>(&sums), p.lanes, p.groups, p.epsilon);
    float factors[V];
    float summands[V];
    unpack(scales, factors);
    unpack(shifts, summands);
#pragma unroll
    for (int i = 0; i < ROWS * COLUMNS; ++i)
    {
        int32_t const row = top + i / COLUMNS;
        int32_t const column = left + i % COLUMNS;
        if (active && row < p.height && column < p.width)
        {
            Moments const m = moments[group * ROWS * COLUMNS + i];
            float values[V];
#pragma unroll
            for (int v = 0; v < V; ++v)
            {
                values[v] = fmaf((sums[i / COLUMNS][i % COLUMNS][v] - m.mean) * m.inverse, factors[v], summands[v]);
            }
            store<T, V>(y + image + (int64_t{row} * p.width + column) * p.channels, repack<T>(values));
        }
    }
}
} // namespace trtconv::depthwise_conv_layer_norm
