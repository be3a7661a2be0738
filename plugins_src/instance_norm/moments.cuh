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

// The moments of two parts together, relative to the shift of the first. Neither is empty.
__device__ __forceinline__ Moments merged(Moments const& a, Moments const& b)
{
    float const count = a.count + b.count;
    float const share = b.count / count;
    float const away = (b.shift - a.shift) + (b.offset - a.offset);
    return {a.shift, fmaf(away, share, a.offset), a.squares + fmaf(away * away * a.count, share, b.squares), count};
}

// Of parts first, first + step, ... of `parts`, of which all but the first of all may be empty; read(i) gives those of
// part i.
template <typename Read>
__device__ __forceinline__ Moments gather(Read const& read, int32_t parts, int32_t first, int32_t step)
{
    Moments mine = {0.0F, 0.0F, 0.0F, 0.0F};
    if (first < parts)
    {
        mine = read(first);
    }
    for (int32_t i = first + step; i < parts; i += step)
    {
        Moments const next = read(i);
        mine = next.count > 0.0F ? merged(mine, next) : mine;
    }
    return mine;
}

// Of the warp's lanes together, for each of them. Lanes may have nothing; the first has something if any has.
__device__ __forceinline__ Moments combineLanes(Moments const& mine)
{
    float const shift = __shfl_sync(0xffffffffU, mine.shift, 0);
    float const away = mine.count > 0.0F ? mine.shift - shift + mine.offset : 0.0F;
    float2 const sums = warpSum(float2{mine.count * away, mine.count});
    float const offset = sums.x / fmaxf(sums.y, 1.0F);
    float const squares = mine.count > 0.0F ? fmaf(mine.count * (away - offset), away - offset, mine.squares) : 0.0F;
    return {shift, offset, trtconv::warpSum(squares), sums.y};
}

// The moments of `parts` parts, of which all but the first may be empty, or all. Every lane of the calling warp gets them.
template <typename Read>
__device__ __forceinline__ Moments combine(Read const& read, int32_t parts)
{
    return combineLanes(gather(read, parts, static_cast<int32_t>(threadIdx.x % 32), 32));
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
