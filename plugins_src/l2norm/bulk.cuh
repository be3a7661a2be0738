// Tiles through the tensor copy engine of compute capability 9.0: a block stays, one tile comes while one is worked on and
// one goes out, and no thread waits for a store.
#pragma once

#include "common/tensor_map.h"
#include "l2norm/columns.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TRTCONV_L2NORM_BULK 1
#else
#define TRTCONV_L2NORM_BULK 0
#endif

namespace trtconv::l2norm
{
inline constexpr int32_t kStages = 3;
// What the sums take beside the tiles, rounded up.
inline constexpr int64_t kBulkStaticBytes = 18 * 1024;
// Rows (channels) of one box that the copy engine moves at a time.
inline constexpr int32_t kMostBoxRows = 256;

struct Boxes
{
    int32_t count; // boxes one above the other that make a tile
    int32_t rows;  // of each
    int32_t positions;
};

#if TRTCONV_L2NORM_BULK
__device__ __forceinline__ uint32_t shared32(void const* pointer)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void loadTile(
    CUtensorMap const& map, unsigned char* stage, uint64_t* full, Boxes const& b, int32_t bytes, int64_t outer, int64_t tile)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared32(full)),
                 "r"(bytes * b.count)
                 : "memory");
    for (int32_t i = 0; i < b.count; ++i)
    {
        asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], "
            "[%5];" ::"r"(shared32(stage + i * bytes)),
            "l"(&map), "r"(static_cast<int32_t>(tile) * b.positions), "r"(i * b.rows), "r"(static_cast<int32_t>(outer)),
            "r"(shared32(full))
            : "memory");
    }
}

__device__ __forceinline__ void storeTile(
    CUtensorMap const& map, unsigned char const* stage, Boxes const& b, int32_t bytes, int64_t outer, int64_t tile)
{
    for (int32_t i = 0; i < b.count; ++i)
    {
        asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map),
                     "r"(static_cast<int32_t>(tile) * b.positions), "r"(i * b.rows), "r"(static_cast<int32_t>(outer)),
                     "r"(shared32(stage + i * bytes))
                     : "memory");
    }
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ __forceinline__ void waitFull(uint64_t* barrier, uint32_t parity)
{
    uint32_t done = 0;
    while (done == 0)
    {
        asm volatile(
            "{\n.reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n}\n"
            : "=r"(done)
            : "r"(shared32(barrier)), "r"(parity)
            : "memory");
    }
}
#endif

// LANES packs make a run of positions. Every thread works on the same places of each tile, so that only the copy engine
// and the sum need barriers.
template <typename T, int LANES, int ITEMS>
__global__ void __launch_bounds__(kThreads, 1) bulkColumns(__grid_constant__ CUtensorMap const from,
    __grid_constant__ CUtensorMap const to, void const* __restrict__ scale, int64_t outer, Boxes const boxes, Column const p)
{
#if TRTCONV_L2NORM_BULK
    constexpr int32_t V = kVectorBytes / sizeof(T);
    constexpr int32_t ROWS = kThreads / LANES;
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ __align__(8) uint64_t full[kStages];
    int32_t const bytes = boxes.rows * LANES * kVectorBytes;
    int32_t const stageBytes = bytes * boxes.count;
    int32_t const row = static_cast<int32_t>(threadIdx.x) / LANES;
    Cursor next{blockIdx.x / p.tiles, blockIdx.x % p.tiles};
    Cursor now = next;
    int64_t const outerStep = gridDim.x / p.tiles;
    int64_t const tileStep = gridDim.x % p.tiles;
    if (threadIdx.x == 0)
    {
        for (int32_t s = 0; s < kStages; ++s)
        {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared32(full + s)) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        for (int32_t s = 0; s < kStages - 1; ++s)
        {
            if (next.outer < outer)
            {
                loadTile(from, memory + s * stageBytes, full + s, boxes, bytes, next.outer, next.tile);
            }
            next.advance(p, outerStep, tileStep);
        }
    }
    __syncthreads();
    int32_t stage = 0;
    uint32_t parity = 0;
    while (now.outer < outer)
    {
        auto* const packs = reinterpret_cast<Pack<T, V>*>(memory + stage * stageBytes) + threadIdx.x;
        waitFull(full + stage, parity);
        Pack<T, V> held[ITEMS];
        float sum[V] = {};
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
        {
            held[i] = {};
            if (row + i * ROWS < p.channels)
            {
                held[i] = packs[i * kThreads];
            }
        }
        addSquares(held, sum);
        keepPacked(held);
        reciprocalNorms<V>(sum, LANES, p.epsilon, p.mode);
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
        {
            if (row + i * ROWS < p.channels)
            {
                float const factor = parameter(scale, p.scaleType, row + i * ROWS);
                packs[i * kThreads] = scaled(held[i], sum, factor);
            }
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0)
        {
            storeTile(to, memory + stage * stageBytes, boxes, bytes, now.outer, now.tile);
            if (next.outer < outer)
            {
                // The store before this one has been read out of the stage that is filled now.
                int32_t const into = stage == 0 ? kStages - 1 : stage - 1;
                asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
                loadTile(from, memory + into * stageBytes, full + into, boxes, bytes, next.outer, next.tile);
            }
            next.advance(p, outerStep, tileStep);
        }
        now.advance(p, outerStep, tileStep);
        stage = stage + 1 == kStages ? 0 : stage + 1;
        parity ^= stage == 0 ? 1U : 0U;
    }
    if (threadIdx.x == 0)
    {
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
#endif
}
} // namespace trtconv::l2norm
