// Lanes of a warp take a row, whose values stay in their registers.
#pragma once

#include "common/pack.cuh"

namespace trtconv::layer_norm
{
inline constexpr int32_t kThreads = 128;
inline constexpr int32_t kWarp = 32;

struct Rows
{
    int64_t rows;
    int32_t channels;
    float epsilon;
};

template <int LANES>
__device__ __forceinline__ float sumOfLanes(float value)
{
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2)
    {
        value += __shfl_xor_sync(0xffffffffU, value, step);
    }
    return value;
}

// Sums are of differences from the row's first value, and squares of differences from the mean, so that a large mean costs no
// digits. N packs of V to each of LANES lanes hold a row.
template <typename T, int V, int N, int LANES>
__device__ __forceinline__ void normalizeRows(
    T const* __restrict__ x, T const* __restrict__ scale, T const* __restrict__ shift, T* __restrict__ y, Rows const& p)
{
    int64_t const row = int64_t{blockIdx.x} * (kThreads / LANES) + threadIdx.x / LANES;
    auto const lane = static_cast<int32_t>(threadIdx.x) & (LANES - 1);
    // Lanes beyond the last row read it too, since all take part in the sums.
    int64_t const begin = (row < p.rows ? row : p.rows - 1) * p.channels;
    int32_t const packs = p.channels / V;
    float const share = 1.0F / static_cast<float>(p.channels);
    float const first = toFloat(x[begin]);
    float values[N][V];
    float sum = 0.0F;
#pragma unroll
    for (int i = 0; i < N; ++i)
    {
        int32_t const pack = i * LANES + lane;
        bool const inside = pack < packs;
        Pack<T, V> read{};
        if (inside)
        {
            read = *reinterpret_cast<Pack<T, V> const*>(x + begin + int64_t{pack} * V);
        }
        unpack<T, V>(read, values[i]);
#pragma unroll
        for (int v = 0; v < V; ++v)
        {
            values[i][v] -= first;
            sum += inside ? values[i][v] : 0.0F;
        }
    }
    float const mean = sumOfLanes<LANES>(sum) * share;
    float squares = 0.0F;
#pragma unroll
    for (int i = 0; i < N; ++i)
    {
        bool const inside = i * LANES + lane < packs;
#pragma unroll
        for (int v = 0; v < V; ++v)
        {
            float const difference = inside ? values[i][v] - mean : 0.0F;
            squares = fmaf(difference, difference, squares);
        }
    }
    float const inverse = 1.0F / sqrtf(fmaf(sumOfLanes<LANES>(squares), share, p.epsilon));
#pragma unroll
    for (int i = 0; i < N; ++i)
    {
        int32_t const pack = i * LANES + lane;
        if (row < p.rows && pack < packs)
        {
            float factors[V];
            float terms[V];
            unpack<T, V>(*reinterpret_cast<Pack<T, V> const*>(scale + pack * V), factors);
            unpack<T, V>(*reinterpret_cast<Pack<T, V> const*>(shift + pack * V), terms);
#pragma unroll
            for (int v = 0; v < V; ++v)
            {
                values[i][v] = fmaf((values[i][v] - mean) * inverse, factors[v], terms[v]);
            }
            store<T, V>(y + begin + int64_t{pack} * V, repack<T, V>(values[i]));
        }
    }
}

// Rows of any length, element by element: they are read three times.
template <typename T>
__device__ __forceinline__ void normalizeLongRows(
    T const* __restrict__ x, T const* __restrict__ scale, T const* __restrict__ shift, T* __restrict__ y, Rows const& p)
{
    int64_t const row = int64_t{blockIdx.x} * (kThreads / kWarp) + threadIdx.x / kWarp;
    auto const lane = static_cast<int32_t>(threadIdx.x) & (kWarp - 1);
    int64_t const begin = (row < p.rows ? row : p.rows - 1) * p.channels;
    float const share = 1.0F / static_cast<float>(p.channels);
    float const first = toFloat(x[begin]);
    float sum = 0.0F;
    for (int32_t c = lane; c < p.channels; c += kWarp)
    {
        sum += toFloat(x[begin + c]) - first;
    }
    float const mean = warpSum(sum) * share;
    float squares = 0.0F;
    for (int32_t c = lane; c < p.channels; c += kWarp)
    {
        float const difference = toFloat(x[begin + c]) - first - mean;
        squares = fmaf(difference, difference, squares);
    }
    float const inverse = 1.0F / sqrtf(fmaf(warpSum(squares), share, p.epsilon));
    for (int32_t c = lane; row < p.rows && c < p.channels; c += kWarp)
    {
        float const unit = (toFloat(x[begin + c]) - first - mean) * inverse;
        y[begin + c] = fromFloat<T>(fmaf(unit, toFloat(scale[c]), toFloat(shift[c])));
    }
}
} // namespace trtconv::layer_norm
