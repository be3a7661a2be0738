// The kernels that hold a plane: how it is normalised by a warp, by a block and by a cluster.
#pragma once

#include "common/pack.cuh"
#include "instance_norm/exchange.cuh"
#include "instance_norm/moments.cuh"
#include "instance_norm/onchip.cuh"

#include <cooperative_groups.h>

namespace trtconv::instance_norm
{
inline constexpr int32_t kMaxCluster = 16;
inline constexpr int32_t kWarpThreads = 128;

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
        return affineOf(
            moments, epsilon, parameter(scale, parameterType, channel), parameter(bias, parameterType, channel));
    }

    __device__ __forceinline__ int32_t valuesIn(int32_t index) const
    {
        int64_t const rest = area - index * part;
        return static_cast<int32_t>(rest < 0 ? 0 : (rest < part ? rest : part));
    }
};

// What a warp or a small block does with a plane of which each thread holds ITEMS packs: number `first`, first + step, ...
template <typename T, int V, int ITEMS>
struct Share
{
    Pack<T, V> held[ITEMS];

    __device__ __forceinline__ void load(T const* __restrict__ x, int64_t base, int32_t area, int32_t first, int32_t step)
    {
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
        {
            held[i] = {};
            int32_t const at = (i * step + first) * V;
            if (at < area)
            {
                held[i] = loadOnce<T, V>(x + base + at);
            }
        }
    }

    template <typename Use>
    __device__ __forceinline__ void forValues(int32_t area, int32_t first, int32_t step, Use const& use) const
    {
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
        {
            if ((i * step + first) * V < area)
            {
                float values[V];
                unpack(held[i], values);
#pragma unroll
                for (int v = 0; v < V; ++v)
                {
                    use(values[v]);
                }
            }
        }
    }

    __device__ __forceinline__ float sum(int32_t area, int32_t first, int32_t step) const
    {
        float total = 0.0F;
        forValues(area, first, step, [&](float value) { total += value; });
        return total;
    }

    // The sums of the differences from `shift` and of their squares.
    __device__ __forceinline__ float2 differences(float shift, int32_t area, int32_t first, int32_t step) const
    {
        float2 sums = {0.0F, 0.0F};
        forValues(area, first, step, [&](float value) {
            sums.x += value - shift;
            sums.y = fmaf(value - shift, value - shift, sums.y);
        });
        return sums;
    }

    __device__ __forceinline__ void write(
        T* __restrict__ y, int64_t base, int32_t area, int32_t first, int32_t step, Affine const& affine, bool relu) const
    {
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
        {
            int32_t const at = (i * step + first) * V;
            if (at < area)
            {
                store<T, V>(y + base + at, apply(held[i], affine, relu));
            }
        }
    }
};

__device__ __forceinline__ Affine planeAffine(Plane const& p, float shift, float2 sums, float count, int64_t plane)
{
    float const offset = sums.x / count;
    return p.affine({shift, offset, fmaxf(sums.y - sums.x * offset, 0.0F), count}, plane);
}

// A plane to a warp.
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
    auto const count = static_cast<float>(area);
    Share<T, V, ITEMS> share;
    share.load(x, plane * p.area, area, lane, 32);
    float const shift = trtconv::warpSum(share.sum(area, lane, 32)) / count;
    float2 const sums = warpSum(share.differences(shift, area, lane, 32));
    share.write(y, plane * p.area, area, lane, 32, planeAffine(p, shift, sums, count, plane), p.relu);
}

// A plane to a block of a few warps.
template <typename T, int V, int ITEMS>
__global__ void __launch_bounds__(kWarpThreads) teamPlanes(T const* __restrict__ x, T* __restrict__ y, Plane const p)
{
    constexpr int32_t warps = kWarpThreads / 32;
    __shared__ float firsts[warps];
    __shared__ float2 seconds[warps];
    int32_t const me = static_cast<int32_t>(threadIdx.x);
    int32_t const area = static_cast<int32_t>(p.area);
    auto const count = static_cast<float>(area);
    int64_t const base = static_cast<int64_t>(blockIdx.x) * p.area;
    Share<T, V, ITEMS> share;
    share.load(x, base, area, me, kWarpThreads);
    float const own = trtconv::warpSum(share.sum(area, me, kWarpThreads));
    if (me % 32 == 0)
    {
        firsts[me / 32] = own;
    }
    __syncthreads();
    float total = 0.0F;
#pragma unroll
    for (int w = 0; w < warps; ++w)
    {
        total += firsts[w];
    }
    float const shift = total / count;
    float2 const part = warpSum(share.differences(shift, area, me, kWarpThreads));
    if (me % 32 == 0)
    {
        seconds[me / 32] = part;
    }
    __syncthreads();
    float2 sums = {0.0F, 0.0F};
#pragma unroll
    for (int w = 0; w < warps; ++w)
    {
        sums.x += seconds[w].x;
        sums.y += seconds[w].y;
    }
    share.write(y, base, area, me, kWarpThreads, planeAffine(p, shift, sums, count, blockIdx.x), p.relu);
}

// The moments of the whole plane from those of the blocks of a cluster. For warp 0 alone, since the others hold values and
// have no registers to spare. Rows are used in turn, so that a block that is ahead does not overwrite what another still
// reads. Nothing here is a fence: one would wait until the plane before has been written out, which takes longer than all
// the rest.
struct Together
{
    Moments (*gathered)[kMaxCluster];
    uint64_t* arrivals; // a barrier for each row

    __device__ __forceinline__ void prepare() const
    {
#if TRTCONV_BULK_COPY
        if (threadIdx.x == 0)
        {
            initBarrier(arrivals);
            initBarrier(arrivals + 1);
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        cooperative_groups::this_cluster().sync(); // all blocks run, and their barriers are there
#endif
    }

    __device__ __forceinline__ Moments operator()(Moments const& own, int32_t parts, int32_t index, int32_t turn) const
    {
        Moments* const row = gathered[turn & 1];
#if TRTCONV_BULK_COPY
        uint64_t* const arrival = arrivals + (turn & 1);
        if (threadIdx.x == 0)
        {
            expectBytes(arrival, static_cast<uint32_t>(parts * sizeof(Moments)));
        }
        if (threadIdx.x < static_cast<uint32_t>(parts))
        {
            sendToBlock(row + index, arrival, threadIdx.x, own);
        }
        waitBarrier(arrival, turn >> 1);
#endif
        return combine(RowReader{row}, parts);
    }
};

// A block, or a cluster of `p.parts` blocks, takes a plane. Blocks stay, and the next part is
// copied to shared memory as soon as the one before it has been taken into registers.
template <typename T, bool CLUSTER>
__global__ void __launch_bounds__(1024, 1) onChipPlanes(T const* __restrict__ x, T* __restrict__ y, Plane const p)
{
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ uint64_t barrier;
    __shared__ Moments warps[32];
    __shared__ Moments gathered[2][kMaxCluster];
    __shared__ uint64_t arrivals[2];
    __shared__ Affine shared;
    int64_t const first = blockIdx.x / p.parts;
    int64_t const step = gridDim.x / p.parts;
    int32_t const index = static_cast<int32_t>(blockIdx.x % p.parts);
    int32_t const count = p.valuesIn(index);
    Together const together{gathered, arrivals};
    Slot<T> const slot{reinterpret_cast<T*>(memory), &barrier};
    auto const partOf = [&](int64_t plane) { return Part<T>(x + plane * p.area + index * p.part, count); };
    slot.prepare();
    slot.fill(partOf(first));
    __syncthreads();
    if constexpr (CLUSTER)
    {
        together.prepare();
    }
    int32_t turn = 0;
    for (int64_t plane = first; plane < p.planes; plane += step)
    {
        Part<T> const part = partOf(plane);
        Held<T> held(part);
        slot.wait(turn);
        held.takeShared(slot.held);
        slot.release();
        __syncthreads();
        if (plane + step < p.planes)
        {
            slot.fill(partOf(plane + step));
        }
        Moments const own = blockMoments(held.warpMoments(part), warps);
        keepPacked(held.pack);
        if (threadIdx.x < 32)
        {
            Moments moments = own;
            if constexpr (CLUSTER)
            {
                moments = together(own, p.parts, index, turn);
            }
            if (threadIdx.x == 0)
            {
                shared = p.affine(moments, plane);
            }
        }
        __syncthreads();
        Affine const affine = shared;
        held.write(part, y + plane * p.area + index * p.part, affine, p.relu);
        ++turn;
    }
}
} // namespace trtconv::instance_norm
