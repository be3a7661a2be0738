// Threads go over the 16-byte granules of y, whatever rows they belong to, so that stores are whole and aligned. The
// values of a granule inside one row lie side by side in x, at any alignment: they are taken out of the two aligned
// granules of x that they touch. Granules with a border in them are put on the block's list, and the block does the list's
// elements one to a thread afterwards: few, and without a branch in the first part that most warps would take both ways.
#include "reflection_pad/kernel.h"

#include "common/device.h"
#include "common/divider.cuh"
#include "common/pack.cuh"

namespace trtconv::reflection_pad
{
namespace
{
constexpr int32_t kThreads = 256;
constexpr int32_t kItems = 2;

struct Layout
{
    Divider byWidth;
    Divider byHeight;
    int64_t planes;
    int64_t height;
    int64_t width;
    int64_t outHeight;
    int64_t outWidth;
    int64_t top;
    int64_t left;
    int64_t elements; // of y
};

struct Place
{
    int64_t plane;
    int64_t row;
    int64_t column;
};

__device__ __forceinline__ int64_t reflect(int64_t at, int64_t size)
{
    at = at < 0 ? -at : at;
    return at >= size ? 2 * (size - 1) - at : at;
}

__device__ __forceinline__ int64_t source(Layout const& l, Place const& p)
{
    int64_t const row = reflect(p.row - l.top, l.height);
    return (p.plane * l.height + row) * l.width + reflect(p.column - l.left, l.width);
}

// Where element `index` of y lies. NARROW: y has fewer than 2^31 elements.
template <bool NARROW>
__device__ __forceinline__ Place placeOf(Layout const& l, int64_t index)
{
    if constexpr (NARROW)
    {
        uint32_t const at = static_cast<uint32_t>(index);
        uint32_t const row = l.byWidth(at);
        uint32_t const plane = l.byHeight(row);
        return {plane, row - plane * l.byHeight.divisor, at - row * l.byWidth.divisor};
    }
    int64_t const row = index / l.outWidth;
    int64_t const plane = row / l.outHeight;
    return {plane, row - plane * l.outHeight, index - row * l.outWidth};
}

// The 16 bytes that begin `bytes` (a multiple of the element's size) after the start of `low`.
template <int SIZE>
__device__ __forceinline__ uint4 extract(uint4 const& low, uint4 const& high, int32_t bytes)
{
    uint32_t w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < 6; ++i)
    {
        w[i] = (bytes & 8) != 0 ? w[i + 2] : w[i];
    }
#pragma unroll
    for (int i = 0; i < 5; ++i)
    {
        w[i] = (bytes & 4) != 0 ? w[i + 1] : w[i];
    }
    if constexpr (SIZE == 2)
    {
#pragma unroll
        for (int i = 0; i < 4; ++i)
        {
            w[i] = __funnelshift_r(w[i], w[i + 1], (bytes & 2) * 8);
        }
    }
    return {w[0], w[1], w[2], w[3]};
}

template <typename T, bool NARROW>
__global__ void __launch_bounds__(kThreads) padGranules(T const* __restrict__ x, T* __restrict__ y, Layout const l)
{
    constexpr int32_t V = kVectorBytes / sizeof(T);
    __shared__ uint16_t listed[kThreads * kItems];
    __shared__ int32_t length;
    if (threadIdx.x == 0)
    {
        length = 0;
    }
    __syncthreads();
    int64_t const first = static_cast<int64_t>(blockIdx.x) * kItems * kThreads * V;
    int64_t const inputs = l.planes * l.height * l.width;
    uint4 low[kItems];
    uint4 high[kItems];
    int32_t shift[kItems]; // bytes; -1: element by element
#pragma unroll
    for (int i = 0; i < kItems; ++i)
    {
        int32_t const granule = i * kThreads + static_cast<int32_t>(threadIdx.x);
        int64_t const index = first + static_cast<int64_t>(granule) * V;
        shift[i] = -1;
        if (index < l.elements)
        {
            Place const p = placeOf<NARROW>(l, index);
            int64_t const column = p.column - l.left;
            int64_t const from = (p.plane * l.height + reflect(p.row - l.top, l.height)) * l.width + column;
            int64_t const aligned = from & ~static_cast<int64_t>(V - 1);
            bool const whole = index + V <= l.elements && aligned + 2 * V <= inputs;
            if (whole && column >= 0 && column + V <= l.width)
            {
                shift[i] = static_cast<int32_t>(from - aligned) * static_cast<int32_t>(sizeof(T));
                low[i] = __ldg(reinterpret_cast<uint4 const*>(x + aligned));
                high[i] = __ldg(reinterpret_cast<uint4 const*>(x + aligned) + 1);
            }
            else
            {
                listed[atomicAdd(&length, 1)] = static_cast<uint16_t>(granule);
            }
        }
    }
    __syncthreads();
    auto const listedAt = [&](int32_t e) { return first + static_cast<int64_t>(listed[e / V]) * V + e % V; };
    auto const valueAt = [&](int64_t index) { return x[source(l, placeOf<NARROW>(l, index))]; };
    // The list's first loads go out before those above are waited for.
    auto const mine = static_cast<int32_t>(threadIdx.x);
    int64_t const index0 = mine < length * V ? listedAt(mine) : l.elements;
    T const value0 = index0 < l.elements ? valueAt(index0) : T{};
#pragma unroll
    for (int i = 0; i < kItems; ++i)
    {
        int32_t const granule = i * kThreads + mine;
        if (shift[i] >= 0)
        {
            __stcg(reinterpret_cast<uint4*>(y + first + static_cast<int64_t>(granule) * V),
                extract<sizeof(T)>(low[i], high[i], shift[i]));
        }
    }
    if (index0 < l.elements)
    {
        y[index0] = value0;
    }
    for (int32_t e = mine + kThreads; e < length * V; e += kThreads)
    {
        int64_t const index = listedAt(e);
        if (index < l.elements)
        {
            y[index] = valueAt(index);
        }
    }
}

// For pointers that are not aligned to 16 bytes.
template <typename T>
__global__ void __launch_bounds__(kThreads) padElements(T const* __restrict__ x, T* __restrict__ y, Layout const l)
{
    int64_t const index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (index < l.elements)
    {
        y[index] = x[source(l, placeOf<false>(l, index))];
    }
}

template <typename T>
cudaError_t launchTyped(Layout const& l, T const* x, T* y, cudaStream_t stream)
{
    bool const aligned = widestPack<T>(0, x, y) * sizeof(T) == kVectorBytes;
    int64_t const each = aligned ? static_cast<int64_t>(kThreads) * kItems * (kVectorBytes / sizeof(T)) : kThreads;
    int64_t const blocks = ceilDiv(l.elements, each);
    if (blocks > kMaxGrid)
    {
        return cudaErrorInvalidConfiguration;
    }
    auto const grid = static_cast<uint32_t>(blocks);
    if (!aligned)
    {
        padElements<T><<<grid, kThreads, 0, stream>>>(x, y, l);
    }
    else if (l.elements <= kMaxGrid)
    {
        padGranules<T, true><<<grid, kThreads, 0, stream>>>(x, y, l);
    }
    else
    {
        padGranules<T, false><<<grid, kThreads, 0, stream>>>(x, y, l);
    }
    return cudaGetLastError();
}
} // namespace

cudaError_t launch(Problem const& p, void const* x, void* y, cudaStream_t stream)
{
    bool const sane = p.planes >= 0 && p.top >= 0 && p.left >= 0 && p.bottom >= 0 && p.right >= 0;
    auto const fits = [](int64_t pad, int64_t size) { return pad < size || (pad == 0 && size == 0); };
    if (!sane || !fits(p.top, p.height) || !fits(p.bottom, p.height) || !fits(p.left, p.width) || !fits(p.right, p.width))
    {
        return cudaErrorInvalidValue;
    }
    int64_t const outHeight = p.height + p.top + p.bottom;
    int64_t const outWidth = p.width + p.left + p.right;
    int64_t const elements = p.planes * outHeight * outWidth;
    if (elements == 0)
    {
        return cudaSuccess;
    }
    bool const narrow = elements <= kMaxGrid;
    Layout const l{Divider(narrow ? outWidth : 1), Divider(narrow ? outHeight : 1), p.planes, p.height, p.width,
        outHeight, outWidth, p.top, p.left, elements};
    // Values are only moved, so that their width is all that matters.
    if (sizeOf(p.type) == 4)
    {
        return launchTyped(l, static_cast<uint32_t const*>(x), static_cast<uint32_t*>(y), stream);
    }
    return launchTyped(l, static_cast<uint16_t const*>(x), static_cast<uint16_t*>(y), stream);
}
} // namespace trtconv::reflection_pad
