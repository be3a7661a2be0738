// A part of a plane in shared memory: how it gets there, its statistics, and how it goes out again.
//
// Parts begin at any element. Shared memory holds the 16-byte granules that the part touches, at the same alignment as
// device memory, so that whole granules move as 16 bytes (by the bulk copy engine on compute capability 9.0) and only the
// first and the last granule are handled element by element.
#pragma once

#include "instance_norm/moments.cuh"

namespace trtconv::instance_norm
{
inline constexpr int32_t kMaxDepth = 3;

// Elements [first, first + count) of x, seen as granules of V elements of which the first `skip` are not the part's.
template <typename T>
struct Part
{
    static constexpr int32_t V = kVectorBytes / sizeof(T);
    T const* base; // aligned to 16 bytes, `skip` elements before the first
    int32_t skip;
    int32_t count;
    int32_t granules;

    __device__ Part(T const* first, int32_t n)
        : base(reinterpret_cast<T const*>(reinterpret_cast<uintptr_t>(first) & ~static_cast<uintptr_t>(kVectorBytes - 1)))
        , skip(static_cast<int32_t>(first - base))
        , count(n)
        , granules((skip + n + V - 1) / V)
    {
    }

    __device__ bool has(int32_t granule, int32_t v) const
    {
        int32_t const element = granule * V + v;
        return element >= skip && element < skip + count;
    }

    __device__ bool whole(int32_t granule) const
    {
        return granule * V >= skip && (granule + 1) * V <= skip + count;
    }
};

__device__ __forceinline__ uint32_t sharedAddress(void const* pointer)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TRTCONV_BULK_COPY 1
#else
#define TRTCONV_BULK_COPY 0
#endif

// One slot of shared memory and the barrier that says when a part is in it. All threads of the block call each function.
template <typename T>
struct Slot
{
    static constexpr int32_t V = Part<T>::V;
    T* held;
    uint64_t* barrier;

    __device__ void prepare() const
    {
#if TRTCONV_BULK_COPY
        if (threadIdx.x == 0)
        {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sharedAddress(barrier)) : "memory");
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        }
#endif
    }

    // Starts the copy of the part. Earlier reads of the slot are over, and a barrier lies between this and `wait`.
    __device__ void fill(Part<T> const& part) const
    {
#if TRTCONV_BULK_COPY
        if (threadIdx.x == 0)
        {
            int32_t const from = part.granules > 0 && !part.whole(0) ? 1 : 0;
            int32_t const last = part.granules - 1;
            int32_t const to = last >= from && !part.whole(last) ? last : part.granules;
            uint32_t const bytes = to > from ? (to - from) * kVectorBytes : 0;
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sharedAddress(barrier)), "r"(bytes)
                         : "memory");
            // Several copies, so that more than one is on its way at a time.
            for (uint32_t at = 0; at < bytes; at += kCopyBytes)
            {
                uint32_t const rest = bytes - at;
                asm volatile(
                    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                        sharedAddress(held + from * V) + at),
                    "l"(__cvta_generic_to_global(part.base + from * V) + at),
                    "r"(rest < kCopyBytes ? rest : kCopyBytes), "r"(sharedAddress(barrier))
                    : "memory");
            }
        }
#else
#pragma unroll 4
        for (int32_t g = threadIdx.x; g < part.granules; g += static_cast<int32_t>(blockDim.x))
        {
            if (part.whole(g))
            {
                *reinterpret_cast<Pack<T, V>*>(held + g * V) = loadOnce<T, V>(part.base + g * V);
            }
        }
#endif
        copyEdges(part);
    }

    // `use` counts the fills of this slot from zero.
    __device__ void wait(int32_t use) const
    {
#if TRTCONV_BULK_COPY
        uint32_t const parity = static_cast<uint32_t>(use) & 1U;
        uint32_t done = 0;
        while (done == 0)
        {
            asm volatile(
                "{\n.reg .pred p;\n"
                "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                "selp.u32 %0, 1, 0, p;\n}\n"
                : "=r"(done)
                : "r"(sharedAddress(barrier)), "r"(parity)
                : "memory");
        }
#else
        (void) use;
#endif
    }

    // Ends the reads of the slot for this thread, so that the copy engine may write it after the next barrier.
    __device__ void release() const
    {
#if TRTCONV_BULK_COPY
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    }

private:
    static constexpr uint32_t kCopyBytes = 8192;

    // The elements of the first and the last granule, one each; the others in them belong to the neighbours.
    __device__ void copyEdges(Part<T> const& part) const
    {
        int32_t const last = part.granules - 1;
        if (threadIdx.x < 2 * V)
        {
            int32_t const granule = threadIdx.x < V ? 0 : last;
            int32_t const v = threadIdx.x % V;
            if ((threadIdx.x < V || last > 0) && !part.whole(granule) && part.has(granule, v))
            {
                held[granule * V + v] = part.base[granule * V + v];
            }
        }
    }
};

// Sums over the block of two floats; every thread gets both. `shared` holds two floats for each of up to 32 warps.
__device__ __forceinline__ float2 blockSum(float2 value, float2* shared)
{
    value.x = warpSum(value.x);
    value.y = warpSum(value.y);
    __syncthreads(); // an earlier use of `shared` is over
    if (threadIdx.x % 32 == 0)
    {
        shared[threadIdx.x / 32] = value;
    }
    __syncthreads();
    float2 total = {0.0F, 0.0F};
    int32_t const lane = threadIdx.x % 32;
    if (lane < static_cast<int32_t>(blockDim.x / 32))
    {
        total = shared[lane];
    }
    total.x = warpSum(total.x);
    total.y = warpSum(total.y);
    return total;
}

// Calls use(float) for each of the part's values in granules [from, to) that this thread has.
template <typename T, typename Use>
__device__ __forceinline__ void forEach(Part<T> const& part, T const* held, int32_t from, int32_t to, Use const& use)
{
    constexpr int32_t V = Part<T>::V;
#pragma unroll 4
    for (int32_t g = from + static_cast<int32_t>(threadIdx.x); g < to; g += static_cast<int32_t>(blockDim.x))
    {
        Pack<T, V> const pack = *reinterpret_cast<Pack<T, V> const*>(held + g * V);
        if (part.whole(g))
        {
            float values[V];
            unpack(pack, values);
#pragma unroll
            for (int v = 0; v < V; ++v)
            {
                use(values[v]);
            }
        }
        else
        {
            for (int v = 0; v < V; ++v)
            {
                if (part.has(g, v))
                {
                    use(toFloat(held[g * V + v]));
                }
            }
        }
    }
}

// The part's moments. The shift is the mean of about an eighth of the values or more, so that the squared shift error is
// at most some seven variances and the subtraction in momentsOf cannot cancel. All threads get them.
template <typename T>
__device__ __forceinline__ Moments partMoments(Part<T> const& part, T const* held, float2* shared)
{
    constexpr int32_t V = Part<T>::V;
    int32_t const sample = (part.granules + 7) / 8;
    float sum = 0.0F;
    forEach(part, held, 0, sample, [&](float value) { sum += value; });
    int32_t const end = sample * V - part.skip;
    int32_t const firsts = end < part.count ? end : part.count;
    float const shift = blockSum({sum, 0.0F}, shared).x / static_cast<float>(firsts);
    float2 sums = {0.0F, 0.0F};
    forEach(part, held, 0, part.granules, [&](float value) {
        float const away = value - shift;
        sums.x += away;
        sums.y = fmaf(away, away, sums.y);
    });
    sums = blockSum(sums, shared);
    return momentsOf(shift, sums.x, sums.y, part.count);
}

// Writes the part's scaled values to y, whose first element of the part is `to`.
template <typename T>
__device__ __forceinline__ void writePart(Part<T> const& part, T const* held, T* to, Affine const& affine, bool relu)
{
    constexpr int32_t V = Part<T>::V;
    T* const base = to - part.skip;
    bool const aligned = reinterpret_cast<uintptr_t>(base) % kVectorBytes == 0;
#pragma unroll 4
    for (int32_t g = threadIdx.x; g < part.granules; g += static_cast<int32_t>(blockDim.x))
    {
        Pack<T, V> const pack = apply(*reinterpret_cast<Pack<T, V> const*>(held + g * V), affine, relu);
        if (aligned && part.whole(g))
        {
            store<T, V>(base + g * V, pack);
        }
        else
        {
#pragma unroll
            for (int v = 0; v < V; ++v)
            {
                if (part.has(g, v))
                {
                    base[g * V + v] = pack.value[v];
                }
            }
        }
    }
}
} // namespace trtconv::instance_norm
