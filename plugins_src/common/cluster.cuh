// Blocks of a cluster that tell each other floats: stores that a barrier in the receiver's shared memory counts, which order
// nothing else, so that no block waits for its own stores to device memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TRTCONV_CLUSTERS 1
#else
#define TRTCONV_CLUSTERS 0
#endif

namespace trtconv::cluster
{
#if TRTCONV_CLUSTERS
__device__ __forceinline__ uint32_t address(void const* shared)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

// A barrier of one arrival, which says how many bytes are to come. By one thread, before arrive().
__device__ __forceinline__ void initBarrier(uint64_t* barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(barrier)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// All threads of all blocks of the cluster: arrive() says that a thread has come, meet() waits for the others.
__device__ __forceinline__ void arrive()
{
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}

__device__ __forceinline__ void meet()
{
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ void expectBytes(uint64_t* barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)), "r"(bytes) : "memory");
}

// `use` counts the uses of the barrier from zero.
__device__ __forceinline__ void wait(uint64_t* barrier, uint32_t use)
{
    uint32_t done = 0;
    while (done == 0)
    {
        asm volatile(
            "{\n.reg .pred p;\n"
            "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n}\n"
            : "=r"(done)
            : "r"(address(barrier)), "r"(use & 1U)
            : "memory");
    }
}

// Stores `value` at `place` of block `rank` of the cluster, and counts the bytes at its `barrier`.
__device__ __forceinline__ void send(float* place, uint64_t* barrier, uint32_t rank, float value)
{
    asm volatile(
        "{\n.reg .b32 to, at;\n"
        "mapa.shared::cluster.u32 to, %0, %2;\n"
        "mapa.shared::cluster.u32 at, %1, %2;\n"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [to], %3, [at];\n}\n" ::"r"(address(place)),
        "r"(address(barrier)), "r"(rank), "r"(__float_as_uint(value))
        : "memory");
}
#endif
} // namespace trtconv::cluster
