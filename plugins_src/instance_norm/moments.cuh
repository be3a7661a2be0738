// Mean and squared deviation of values that lie in parts: sums about a shift, combined in double.
#pragma once

#include "common/pack.cuh"

namespace trtconv::instance_norm
{
// The moments of a part: its number of values is known from its place.
struct Moments
{
    double mean;
    double squares; // sum of squared differences from `mean`
};

// y = ((x - high) - low) * gain + bias; the mean in two floats, so that a large offset is subtracted exactly.
struct Affine
{
    float high;
    float low;
    float gain;
    float bias;
};

// From sums of d and d * d, where d = x - shift.
__device__ __forceinline__ Moments momentsOf(float shift, double sum, double squares, double count)
{
    double const offset = sum / count;
    double const about = squares - sum * offset;
    return {static_cast<double>(shift) + offset, about > 0.0 ? about : 0.0};
}

// Moments of `parts` parts, part i of which has min(size, total - i * size) values. For one warp; all lanes get them.
__device__ __forceinline__ Moments combine(Moments const* part, int32_t parts, int64_t size, int64_t total)
{
    int32_t const lane = threadIdx.x % 32;
    auto const countOf = [&](int32_t i) {
        int64_t const rest = total - i * size;
        return static_cast<double>(rest < 0 ? 0 : (rest < size ? rest : size));
    };
    double sum = 0.0;
    for (int32_t i = lane; i < parts; i += 32)
    {
        double const count = countOf(i);
        sum += count > 0.0 ? count * part[i].mean : 0.0;
    }
    double const mean = warpSum(sum) / static_cast<double>(total);
    double squares = 0.0;
    for (int32_t i = lane; i < parts; i += 32)
    {
        double const count = countOf(i);
        double const away = part[i].mean - mean;
        squares += count > 0.0 ? part[i].squares + count * away * away : 0.0;
    }
    return {mean, warpSum(squares)};
}

__device__ __forceinline__ Affine affineOf(Moments const& moments, int64_t total, float epsilon, float scale, float bias)
{
    double const variance = moments.squares / static_cast<double>(total);
    float const high = static_cast<float>(moments.mean);
    float const low = static_cast<float>(moments.mean - static_cast<double>(high));
    double const inverse = 1.0 / sqrt(variance + static_cast<double>(epsilon));
    return {high, low, static_cast<float>(inverse * static_cast<double>(scale)), bias};
}

__device__ __forceinline__ float apply(float value, Affine const& a, bool relu)
{
    float const result = fmaf((value - a.high) - a.low, a.gain, a.bias);
    // Not fmaxf, which would turn a NaN into zero.
    return relu && result < 0.0F ? 0.0F : result;
}

template <typename T, int V>
__device__ __forceinline__ Pack<T, V> apply(Pack<T, V> const& pack, Affine const& affine, bool relu)
{
    float values[V];
    unpack(pack, values);
#pragma unroll
    for (int v = 0; v < V; ++v)
    {
        values[v] = apply(values[v], affine, relu);
    }
    return repack<T>(values);
}
} // namespace trtconv::instance_norm
