// A part of a plane: how it gets on chip, its moments, and how it goes out again.
//
// Parts begin at any element. They are seen as the 16-byte granules that they touch, at the same alignment as in device
// memory, so that whole granules move as 16 bytes (to shared memory by the bulk copy engine on compute capability 9.0)
// and only the first and the last granule are handled element by element.
#pragma once

#include "common/retention.cuh"
#include "instance_norm/exchange.cuh"

namespace trtconv::instance_norm
{
// Granules that a thread holds in registers.
inline constexpr int32_t kItems = 8;

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

// The shared memory that the next part is copied to while one is worked on, and the barrier that says when a part is in it. All threads of the block call each function.
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
            initBarrier(barrier);
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
            uint64_t const policy = linesPolicy<Lines::kStay>();
            int32_t const first = part.granules > 0 && !part.whole(0) ? 1 : 0;
            int32_t const last = part.granules - 1;
            int32_t const end = last >= first && !part.whole(last) ? last : part.granules;
            uint32_t const bytes = end > first ? (end - first) * kVectorBytes : 0;
            expectBytes(barrier, bytes);
            // Several copies, so that more than one is on its way at a time.
            for (uint32_t at = 0; at < bytes; at += kCopyBytes)
            {
                uint32_t const rest = bytes - at;
                uint32_t const each = rest < kCopyBytes ? rest : kCopyBytes;
                uint32_t const to = sharedAddress(held + first * V) + at;
                auto const source = __cvta_generic_to_global(part.base + first * V) + at;
                asm volatile(
                    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                    "[%0], [%1], %2, [%3], %4;" ::"r"(to),
                    "l"(source), "r"(each), "r"(sharedAddress(barrier)), "l"(policy)
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

    // `use` counts the fills from zero.
    __device__ void wait(int32_t use) const
    {
#if TRTCONV_BULK_COPY
        waitBarrier(barrier, use);
#else
        (void) use;
#endif
    }

    // Ends this thread's reads, so that the copy engine may write after the next barrier.
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

// A thread's granules of a part: number threadIdx.x, threadIdx.x + blockDim.x, ...
template <typename T>
struct Held
{
    static constexpr int32_t V = Part<T>::V;
    Pack<T, V> pack[kItems];
    uint32_t whole; // bit i: granule i is all of the part
    uint32_t edge;  // bit i: some of it is

    __device__ __forceinline__ explicit Held(Part<T> const& part)
        : whole(0)
        , edge(0)
    {
#pragma unroll
        for (int i = 0; i < kItems; ++i)
        {
            pack[i] = {};
            bool const all = part.whole(granule(i));
            whole |= all ? 1U << i : 0U;
            edge |= !all && granule(i) < part.granules ? 1U << i : 0U;
        }
    }

    __device__ __forceinline__ static int32_t granule(int i)
    {
        return i * static_cast<int32_t>(blockDim.x) + static_cast<int32_t>(threadIdx.x);
    }

    __device__ __forceinline__ void takeShared(T const* held)
    {
#pragma unroll
        for (int i = 0; i < kItems; ++i)
        {
            if (((whole | edge) >> i & 1U) != 0)
            {
                pack[i] = *reinterpret_cast<Pack<T, V> const*>(held + granule(i) * V);
            }
        }
    }

    template <Lines LINES>
    __device__ __forceinline__ void takeGlobal(Part<T> const& part)
    {
        uint64_t const policy = linesPolicy<LINES>();
#pragma unroll
        for (int i = 0; i < kItems; ++i)
        {
            if ((whole >> i & 1U) != 0)
            {
                pack[i] = loadLines<LINES>(reinterpret_cast<Pack<T, V> const*>(part.base + granule(i) * V), policy);
            }
        }
        if (edge != 0)
        {
            forElements(part, edge, [&](int i, int v) { pack[i].value[v] = part.base[granule(i) * V + v]; });
        }
    }

    // The moments of the values that this warp holds; of nothing, if it holds none.
    __device__ __forceinline__ Moments warpMoments(Part<T> const& part) const
    {
        float2 sums = {0.0F, 0.0F};
        forValues(part, [&](float value) {
            sums.x += value;
            sums.y += 1.0F;
        });
        sums = warpSum(sums);
        float const count = sums.y;
        float const shift = sums.x / fmaxf(count, 1.0F);
        sums = {0.0F, 0.0F};
        forValues(part, [&](float value) {
            float const away = value - shift;
            sums.x += away;
            sums.y = fmaf(away, away, sums.y);
        });
        sums = warpSum(sums);
        float const offset = sums.x / fmaxf(count, 1.0F);
        return {shift, offset, fmaxf(sums.y - sums.x * offset, 0.0F), count};
    }

    // Writes the scaled values to y, whose first element of the part is `to`.
    __device__ __forceinline__ void write(Part<T> const& part, T* to, Affine const& affine, bool relu) const
    {
        T* const base = to - part.skip;
        bool const aligned = reinterpret_cast<uintptr_t>(base) % kVectorBytes == 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i)
        {
            if (aligned && (whole >> i & 1U) != 0)
            {
                store<T, V>(base + granule(i) * V, apply(pack[i], affine, relu));
            }
        }
        uint32_t const single = aligned ? edge : edge | whole;
        if (single != 0)
        {
            forElements(part, single, [&](int i, int v) {
                base[granule(i) * V + v] = fromFloat<T>(apply(toFloat(pack[i].value[v]), affine, relu));
            });
        }
    }

private:
    // Calls use(item, element) for the part's elements in the granules of the mask.
    template <typename Use>
    __device__ __forceinline__ void forElements(Part<T> const& part, uint32_t mask, Use const& use) const
    {
#pragma unroll
        for (int i = 0; i < kItems; ++i)
        {
            if ((mask >> i & 1U) != 0)
            {
#pragma unroll
                for (int v = 0; v < V; ++v)
                {
                    if (part.has(granule(i), v))
                    {
                        use(i, v);
                    }
                }
            }
        }
    }

    template <typename Use>
    __device__ __forceinline__ void forValues(Part<T> const& part, Use const& use) const
    {
#pragma unroll
        for (int i = 0; i < kItems; ++i)
        {
            if ((whole >> i & 1U) != 0)
            {
                float values[V];
                unpack(pack[i], values);
#pragma unroll
                for (int v = 0; v < V; ++v)
                {
                    use(values[v]);
                }
            }
        }
        if (edge != 0)
        {
            forElements(part, edge, [&](int i, int v) { use(toFloat(pack[i].value[v])); });
        }
    }
};

// The block's moments from its warps'. Warp 0 gets them; a barrier lies between this and the next use of `shared`.
__device__ __forceinline__ Moments blockMoments(Moments const& own, Moments* shared)
{
    if (threadIdx.x % 32 == 0)
    {
        shared[threadIdx.x / 32] = own;
    }
    __syncthreads();
    return threadIdx.x < 32 ? combine(RowReader{shared}, static_cast<int32_t>(blockDim.x / 32)) : own;
}
} // namespace trtconv::instance_norm
