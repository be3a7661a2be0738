// Mean and squared deviation of values that lie in parts, without cancellation: a warp sums differences from its own mean,
// and parts are combined relative to the first part's shift.
#pragma once

#include "common/pack.cuh"

namespace trtconv::instance_norm
{
// `count` values with mean shift + offset (offset is small, or zero) and sum of squared differences from it `squares`.
struct alignas(16) Moments
{
    float shift;
    float offset;
    float squares;
    float count;
};

// y = (x - mean) * gain + bias, where bias has taken in what the float `mean` lacks of the mean.
struct Affine
{
    float mean;
    float gain;
    float bias;
};

__device__ __forceinline__ float2 warpSum(float2 value)
{
    return {trtconv::warpSum(value.x), trtconv::warpSum(value.y)};
}

// The moments of `parts` parts, the first of which is not empty. Every lane of the calling warp gets them.
__device__ __forceinline__ Moments combine(Moments const* part, int32_t parts)
{
    int32_t const lane = threadIdx.x % 32;
    float const shift = part[0].shift;
    auto const away = [&](Moments const& m) { return m.shift - shift + m.offset; };
    float2 sums = {0.0F, 0.0F};
    for (int32_t i = lane; i < parts; i += 32)
    {
        Moments const m = part[i];
        if (m.count > 0.0F)
        {
            sums.x = fmaf(m.count, away(m), sums.x);
            sums.y += m.count;
        }
    }
    sums = warpSum(sums);
    float const offset = sums.x / sums.y;
    float squares = 0.0F;
    for (int32_t i = lane; i < parts; i += 32)
    {
        Moments const m = part[i];
        if (m.count > 0.0F)
        {
            float const difference = away(m) - offset;
            squares += fmaf(m.count * difference, difference, m.squares);
        }
    }
    return {shift, offset, trtconv::warpSum(squares), sums.y};
}

__device__ __forceinline__ Affine affineOf(Moments const& m, float epsilon, float scale, float bias)
{
    // mean + low is shift + offset to twice the precision of a float.
    float const mean = m.shift + m.offset;
    float const back = mean - m.shift;
    float const low = (m.shift - (mean - back)) + (m.offset - back);
    float const gain = scale * rsqrtf(m.squares / m.count + epsilon);
    return {mean, gain, fmaf(-low, gain, bias)};
}

__device__ __forceinline__ float apply(float value, Affine const& a, bool relu)
{
    float const result = fmaf(value - a.mean, a.gain, a.bias);
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
