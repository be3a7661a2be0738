// How blocks of a cluster tell each other their moments: by stores that a barrier in the receiver's shared memory counts.
#pragma once

#include "instance_norm/moments.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TRTCONV_BULK_COPY 1
#else
#define TRTCONV_BULK_COPY 0
#endif

namespace trtconv::instance_norm
{
__device__ __forceinline__ uint32_t sharedAddress(void const* pointer)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

#if TRTCONV_BULK_COPY
// A barrier of one arrival, which says how many bytes are to come.
__device__ __forceinline__ void initBarrier(uint64_t* barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sharedAddress(barrier)) : "memory");
}

__device__ __forceinline__ void expectBytes(uint64_t* barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sharedAddress(barrier)), "r"(bytes)
                 : "memory");
}

// `use` counts the uses of the barrier from zero.
__device__ __forceinline__ void waitBarrier(uint64_t* barrier, int32_t use)
{
    uint32_t done = 0;
    while (done == 0)
    {
        asm volatile(
            "{\n.reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n}\n"
            : "=r"(done)
            : "r"(sharedAddress(barrier)), "r"(static_cast<uint32_t>(use) & 1U)
            : "memory");
    }
}

// Stores `moments` at `place` of block `rank` of the cluster, and counts the bytes at its `barrier`.
__device__ __forceinline__ void sendToBlock(Moments* place, uint64_t* barrier, uint32_t rank, Moments const& moments)
{
    asm volatile(
        "{\n.reg .b32 to, at;\n"
        "mapa.shared::cluster.u32 to, %0, %2;\n"
        "mapa.shared::cluster.u32 at, %1, %2;\n"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [to], {%3, %4, %5, %6}, [at];\n}\n" ::"r"(
            sharedAddress(place)),
        "r"(sharedAddress(barrier)), "r"(rank), "r"(__float_as_uint(moments.shift)),
        "r"(__float_as_uint(moments.offset)), "r"(__float_as_uint(moments.squares)), "r"(__float_as_uint(moments.count))
        : "memory");
}
#endif

// Moments that lie side by side.
struct RowReader
{
    Moments const* row;

    __device__ Moments operator()(int32_t index) const
    {
        return row[index];
    }
};
} // namespace trtconv::instance_norm
