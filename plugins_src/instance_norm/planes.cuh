// The kernels: how a plane is normalised by a warp, by a block, a cluster or the grid, and in two reads.
#pragma once

#include "common/pack.cuh"
#include "instance_norm/moments.cuh"
#include "instance_norm/onchip.cuh"

#include <cooperative_groups.h>

namespace trtconv::instance_norm
{
inline constexpr int32_t kMaxCluster = 16;
inline constexpr int32_t kWarpThreads = 128;

// Who works on one plane together.
enum class Gather : int32_t
{
    kBlock,
    kCluster,
    kGrid,
};

struct Plane
{
    int64_t planes;
    int64_t channels;
    int64_t area;
    int64_t part; // values in each part but the last
    int32_t parts;
    float epsilon;
    bool relu;
    ElementType parameterType;
    void const* scale;
    void const* bias;

    __device__ __forceinline__ Affine affine(Moments const& moments, int64_t plane) const
    {
        int64_t const channel = plane % channels;
        return affineOf(moments, area, epsilon, parameter(scale, parameterType, channel),
            parameter(bias, parameterType, channel));
    }

    __device__ __forceinline__ int32_t valuesIn(int32_t index) const
    {
        int64_t const rest = area - index * part;
        return static_cast<int32_t>(rest < 0 ? 0 : (rest < part ? rest : part));
    }
};

template <typename T, int V, int ITEMS>
__global__ void __launch_bounds__(kWarpThreads) warpPlanes(T const* __restrict__ x, T* __restrict__ y, Plane const p)
{
    int64_t const plane = static_cast<int64_t>(blockIdx.x) * (kWarpThreads / 32) + threadIdx.x / 32;
    if (plane >= p.planes)
    {
        return; // whole warps leave
    }
    int32_t const lane = threadIdx.x % 32;
    int32_t const area = static_cast<int32_t>(p.area);
    int64_t const base = plane * p.area;
    Pack<T, V> held[ITEMS];
    float sum = 0.0F;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        held[i] = {};
        int32_t const at = (i * 32 + lane) * V;
        if (at < area)
        {
            held[i] = loadOnce<T, V>(x + base + at);
        }
    }
    auto const forValues = [&](auto const& use) {
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
        {
            if ((i * 32 + lane) * V < area)
            {
#pragma unroll
                for (int v = 0; v < V; ++v)
                {
                    use(toFloat(held[i].value[v]));
                }
            }
        }
    };
    forValues([&](float value) { sum += value; });
    float const shift = warpSum(sum) / static_cast<float>(area);
    float2 sums = {0.0F, 0.0F};
    forValues([&](float value) {
        sums.x += value - shift;
        sums.y = fmaf(value - shift, value - shift, sums.y);
    });
    Affine const affine = p.affine(momentsOf(shift, warpSum(sums.x), warpSum(sums.y), area), plane);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        int32_t const at = (i * 32 + lane) * V;
        if (at < area)
        {
            store<T, V>(y + base + at, apply(held[i], affine, p.relu));
        }
    }
}

// Where the blocks of a whole-device launch meet: in device memory. The counter begins at zero and only grows.
struct Meeting
{
    uint32_t* counter;
    Moments* moments; // two rows of `parts`, used in turn

    // Returns when all `parts` blocks have been here `times` times. What they wrote before is visible then.
    __device__ void wait(int32_t parts, uint32_t times) const
    {
        __syncthreads();
        if (threadIdx.x == 0)
        {
            __threadfence();
            atomicAdd(counter, 1U);
            uint32_t const target = times * static_cast<uint32_t>(parts);
            uint32_t arrived = 0;
            while (arrived < target)
            {
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(counter) : "memory");
            }
        }
        __syncthreads();
    }
};

// The moments of the whole plane from those of its parts. `side` alternates from plane to plane, so that a block that is
// ahead does not overwrite what another still reads. Warp 0 gets the result.
struct Together
{
    Meeting meeting;
    Moments (*gathered)[kMaxCluster];
    Gather gather;

    __device__ __forceinline__ Moments operator()(Moments const& own, Plane const& p, int32_t index, int32_t turn) const
    {
        int32_t const side = turn & 1;
        if (gather == Gather::kGrid)
        {
            Moments* const row = meeting.moments + side * p.parts;
            if (threadIdx.x == 0)
            {
                row[index] = own;
            }
            meeting.wait(p.parts, static_cast<uint32_t>(turn) + 1);
            return threadIdx.x < 32 ? combine(row, p.parts, p.part, p.area) : own;
        }
#if TRTCONV_BULK_COPY
        if (gather == Gather::kCluster)
        {
            auto const cluster = cooperative_groups::this_cluster();
            if (threadIdx.x < static_cast<uint32_t>(p.parts))
            {
                *cluster.map_shared_rank(&gathered[side][index], threadIdx.x) = own;
            }
            cluster.sync();
            return threadIdx.x < 32 ? combine(gathered[side], p.parts, p.part, p.area) : own;
        }
#endif
        return own;
    }
};

// A block, a cluster or the whole grid (`gather`) takes a plane, in `p.parts` parts. Blocks stay: while one plane is
// worked on, the next depth - 1 are copied.
template <typename T>
__global__ void __launch_bounds__(1024) onChipPlanes(
    T const* __restrict__ x, T* __restrict__ y, Plane const p, int32_t depth, int32_t slotBytes, Gather gather, Meeting meeting)
{
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ uint64_t barriers[kMaxDepth];
    __shared__ float2 scratch[32];
    __shared__ Moments gathered[2][kMaxCluster];
    __shared__ Affine shared;
    int64_t const first = blockIdx.x / p.parts;
    int64_t const step = gridDim.x / p.parts;
    int32_t const index = static_cast<int32_t>(blockIdx.x % p.parts);
    int32_t const count = p.valuesIn(index);
    Together const together{meeting, gathered, gather};
    auto const slotOf = [&](int32_t slot) { return Slot<T>{reinterpret_cast<T*>(memory + slot * slotBytes), barriers + slot}; };
    auto const partOf = [&](int64_t plane) { return Part<T>(x + plane * p.area + index * p.part, count); };
    for (int32_t d = 0; d < depth; ++d)
    {
        slotOf(d).prepare();
        if (first + d * step < p.planes)
        {
            slotOf(d).fill(partOf(first + d * step));
        }
    }
    __syncthreads();
#if TRTCONV_BULK_COPY
    if (gather == Gather::kCluster)
    {
        cooperative_groups::this_cluster().sync(); // all its blocks run, so that their shared memory may be written
    }
#endif
    int32_t slot = 0;
    int32_t use = 0;
    int32_t turn = 0;
    for (int64_t plane = first; plane < p.planes; plane += step)
    {
        Slot<T> const current = slotOf(slot);
        Part<T> const part = partOf(plane);
        current.wait(use);
        Moments const own = count > 0 ? partMoments(part, current.held, scratch) : Moments{0.0, 0.0};
        Moments const moments = together(own, p, index, turn++);
        if (threadIdx.x == 0)
        {
            shared = p.affine(moments, plane);
        }
        __syncthreads();
        Affine const affine = shared;
        writePart(part, current.held, y + plane * p.area + index * p.part, affine, p.relu);
        current.release();
        __syncthreads();
        if (plane + depth * step < p.planes)
        {
            current.fill(partOf(plane + depth * step));
        }
        slot = slot + 1 == depth ? 0 : slot + 1;
        use += slot == 0 ? 1 : 0;
        if (depth == 1)
        {
            __syncthreads(); // the edges are there
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(256) splitMoments(T const* __restrict__ x, Moments* __restrict__ moments, Plane const p)
{
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ uint64_t barrier;
    __shared__ float2 scratch[32];
    int32_t const index = static_cast<int32_t>(blockIdx.x % p.parts);
    Slot<T> const slot{reinterpret_cast<T*>(memory), &barrier};
    Part<T> const part(x + (blockIdx.x / p.parts) * p.area + index * p.part, p.valuesIn(index));
    slot.prepare();
    slot.fill(part);
    __syncthreads();
    slot.wait(0);
    Moments const own = partMoments(part, slot.held, scratch);
    if (threadIdx.x == 0)
    {
        moments[blockIdx.x] = own;
    }
}

template <typename T>
__global__ void __launch_bounds__(256)
    splitApply(T const* __restrict__ x, T* __restrict__ y, Moments const* __restrict__ moments, Plane const p, int64_t plane0)
{
    constexpr int32_t V = Part<T>::V;
    __shared__ Affine shared;
    int64_t const plane = blockIdx.x / p.parts;
    int32_t const index = static_cast<int32_t>(blockIdx.x % p.parts);
    if (threadIdx.x < 32)
    {
        Moments const all = combine(moments + plane * p.parts, p.parts, p.part, p.area);
        if (threadIdx.x == 0)
        {
            shared = p.affine(all, plane0 + plane);
        }
    }
    __syncthreads();
    Affine const affine = shared;
    int64_t const at = plane * p.area + index * p.part;
    Part<T> const part(x + at, p.valuesIn(index));
    T* const base = y + at - part.skip;
    bool const aligned = reinterpret_cast<uintptr_t>(base) % kVectorBytes == 0;
#pragma unroll 4
    for (int32_t g = threadIdx.x; g < part.granules; g += static_cast<int32_t>(blockDim.x))
    {
        if (aligned && part.whole(g))
        {
            store<T, V>(base + g * V, apply(loadOnce<T, V>(part.base + g * V), affine, p.relu));
        }
        else
        {
            for (int v = 0; v < V; ++v)
            {
                if (part.has(g, v))
                {
                    base[g * V + v] = fromFloat<T>(apply(toFloat(part.base[g * V + v]), affine, p.relu));
                }
            }
        }
    }
}
} // namespace trtconv::instance_norm
