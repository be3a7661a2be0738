// The kernels. Threads go over the 16-byte granules of y, whatever rows they belong to, so that stores are whole and aligned.
#pragma once

#include "common/divider.cuh"
#include "common/retention.cuh"

namespace trtconv::reflection_pad
{
inline constexpr int32_t kThreads = 256;

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

// Numbers elements of x and y. NARROW: y has fewer than 2^31 elements, and x no more than y.
template <bool NARROW>
using Index = std::conditional_t<NARROW, int32_t, int64_t>;

template <typename I>
struct Place
{
    I plane;
    I row;
    I column;
};

template <typename I>
__device__ __forceinline__ I reflect(I at, I size)
{
    at = at < 0 ? -at : at;
    return at >= size ? 2 * (size - 1) - at : at;
}

// Where the row of x begins that a row of y shows.
template <typename I>
__device__ __forceinline__ I sourceRow(Layout const& l, Place<I> const& p)
{
    auto const height = static_cast<I>(l.height);
    return (p.plane * height + reflect(p.row - static_cast<I>(l.top), height)) * static_cast<I>(l.width);
}

template <typename I>
__device__ __forceinline__ I source(Layout const& l, Place<I> const& p)
{
    return sourceRow(l, p) + reflect(p.column - static_cast<I>(l.left), static_cast<I>(l.width));
}

// Where element `index` of y lies.
template <bool NARROW>
__device__ __forceinline__ Place<Index<NARROW>> placeOf(Layout const& l, Index<NARROW> index)
{
    if constexpr (NARROW)
    {
        uint32_t const at = static_cast<uint32_t>(index);
        uint32_t const row = l.byWidth(at);
        uint32_t const plane = l.byHeight(row);
        return {static_cast<int32_t>(plane), static_cast<int32_t>(row - plane * l.byHeight.divisor),
            static_cast<int32_t>(at - row * l.byWidth.divisor)};
    }
    else
    {
        int64_t const row = index / l.outWidth;
        int64_t const plane = row / l.outHeight;
        return {plane, row - plane * l.outHeight, index - row * l.outWidth};
    }
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

// The values of a granule inside one row lie side by side in x, at any alignment: they are taken out of the two aligned
// granules of x that they touch. Granules with a border in them are put on the block's list, and the block does the list's
// elements one to a thread afterwards: few, and without a branch in the first part that most warps would take both ways.
template <typename T, int ITEMS, bool NARROW>
__global__ void __launch_bounds__(kThreads) padGranules(T const* __restrict__ x, T* __restrict__ y, Layout const l)
{
    using I = Index<NARROW>;
    constexpr int32_t V = kVectorBytes / sizeof(T);
    auto const elements = static_cast<I>(l.elements);
    uint64_t const policy = linesPolicy<Lines::kStay>();
    __shared__ uint16_t listed[kThreads * ITEMS];
    __shared__ int32_t length;
    if (threadIdx.x == 0)
    {
        length = 0;
    }
    __syncthreads();
    I const first = static_cast<I>(blockIdx.x) * (ITEMS * kThreads * V);
    auto const inputs = static_cast<I>(l.planes * l.height * l.width);
    uint4 low[ITEMS];
    uint4 high[ITEMS];
    int32_t shift[ITEMS]; // bytes; -1: element by element
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        int32_t const granule = i * kThreads + static_cast<int32_t>(threadIdx.x);
        I const index = first + static_cast<I>(granule) * V;
        shift[i] = -1;
        if (index < elements)
        {
            Place<I> const p = placeOf<NARROW>(l, index);
            I const column = p.column - static_cast<I>(l.left);
            I const from = sourceRow(l, p) + column;
            I const aligned = from & ~static_cast<I>(V - 1);
            bool const whole = index + V <= elements && aligned + 2 * V <= inputs;
            if (whole && column >= 0 && column + V <= static_cast<I>(l.width))
            {
                shift[i] = static_cast<int32_t>(from - aligned) * static_cast<int32_t>(sizeof(T));
                auto const* const granules = reinterpret_cast<uint4 const*>(x + aligned);
                low[i] = loadLines<Lines::kStay>(granules, policy);
                high[i] = loadLines<Lines::kStay>(granules + 1, policy);
            }
            else
            {
                listed[atomicAdd(&length, 1)] = static_cast<uint16_t>(granule);
            }
        }
    }
    __syncthreads();
    auto const listedAt = [&](int32_t e) { return first + static_cast<I>(listed[e / V]) * V + e % V; };
    auto const valueAt = [&](I index) { return x[source(l, placeOf<NARROW>(l, index))]; };
    // The list's first loads go out before those above are waited for.
    auto const mine = static_cast<int32_t>(threadIdx.x);
    I const index0 = mine < length * V ? listedAt(mine) : elements;
    T const value0 = index0 < elements ? valueAt(index0) : T{};
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        int32_t const granule = i * kThreads + mine;
        if (shift[i] >= 0)
        {
            __stcg(reinterpret_cast<uint4*>(y + first + static_cast<I>(granule) * V),
                extract<sizeof(T)>(low[i], high[i], shift[i]));
        }
    }
    if (index0 < elements)
    {
        y[index0] = value0;
    }
    for (int32_t e = mine + kThreads; e < length * V; e += kThreads)
    {
        I const index = listedAt(e);
        if (index < elements)
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

// Where elements [index, index + V) of y come from, for y of fewer than 2^31 elements.
template <int V>
__device__ __forceinline__ void sources(Layout const& l, uint32_t index, uint32_t (&from)[V])
{
    auto const width = static_cast<int32_t>(l.width);
    auto const height = static_cast<int32_t>(l.height);
    uint32_t row = l.byWidth(index);
    int32_t column = static_cast<int32_t>(index - row * l.byWidth.divisor);
    uint32_t base = 0;
    auto const enter = [&] {
        uint32_t const plane = l.byHeight(row);
        int32_t at = static_cast<int32_t>(row - plane * l.byHeight.divisor) - static_cast<int32_t>(l.top);
        at = at < 0 ? -at : at;
        at = at >= height ? 2 * (height - 1) - at : at;
        base = (plane * static_cast<uint32_t>(height) + static_cast<uint32_t>(at)) * static_cast<uint32_t>(width);
    };
    enter();
#pragma unroll
    for (int v = 0; v < V; ++v)
    {
        if (column == static_cast<int32_t>(l.outWidth))
        {
            column = 0;
            ++row;
            enter();
        }
        int32_t at = column - static_cast<int32_t>(l.left);
        at = at < 0 ? -at : at;
        at = at >= width ? 2 * (width - 1) - at : at;
        from[v] = base + static_cast<uint32_t>(at);
        ++column;
    }
}

// Neighbouring loads of a thread meet in L1.
template <typename T, int ITEMS>
__global__ void __launch_bounds__(kThreads) padGathered(T const* __restrict__ x, T* __restrict__ y, Layout const l)
{
    constexpr int32_t V = kVectorBytes / sizeof(T);
    auto const elements = static_cast<uint32_t>(l.elements);
    uint32_t const first = (blockIdx.x * static_cast<uint32_t>(kThreads) * ITEMS + threadIdx.x) * V;
    uint64_t const policy = linesPolicy<Lines::kStay>();
    Pack<T, V> packs[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        uint32_t const index = first + i * kThreads * V;
        if (index < elements)
        {
            uint32_t from[V];
            sources<V>(l, index, from);
#pragma unroll
            for (int v = 0; v < V; ++v)
            {
                packs[i].value[v] = index + v < elements ? loadLines<Lines::kStay>(x + from[v], policy) : T{};
            }
        }
    }
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        uint32_t const index = first + i * kThreads * V;
        if (index + V <= elements)
        {
            store<T, V>(y + index, packs[i]);
        }
        else
        {
#pragma unroll
            for (int v = 0; v < V; ++v)
            {
                if (index + v < elements)
                {
                    y[index + v] = packs[i].value[v];
                }
            }
        }
    }
}
} // namespace trtconv::reflection_pad
