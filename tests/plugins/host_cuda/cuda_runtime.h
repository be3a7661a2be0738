// Enough of CUDA's device side to run a kernel on the CPU, block after block: each thread is a fiber, barriers and shuffles
// wait for the other fibers. Slow, and exact in what the kernels' own code does with indices, shared memory and barriers.
#pragma once

#include <cuda_runtime_api.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <utility>
#include <vector>

inline uint3 threadIdx;
inline uint3 blockIdx;
inline dim3 blockDim;
inline dim3 gridDim;

namespace host_cuda
{
// Fibers that meet here go on once as many have come as are expected.
struct Barrier
{
    uint32_t arrived{0};
    uint64_t round{0};
};

struct Fiber
{
    ucontext_t context;
    std::vector<char> stack;
    bool done{false};
};

struct Block
{
    std::vector<Fiber> fibers;
    ucontext_t scheduler;
    size_t current{0};
    uint32_t alive{0};
    Barrier all;
    std::map<std::pair<uint32_t, uint32_t>, Barrier> groups; // by warp and mask
    std::vector<uint64_t> values;                            // what each thread shows in a shuffle
    std::function<void()> body;

    void yield()
    {
        Fiber& fiber = fibers[current];
        swapcontext(&fiber.context, &scheduler);
    }
};

inline Block* block = nullptr;

inline void meet(Barrier& barrier, uint32_t expected)
{
    uint64_t const round = barrier.round;
    if (++barrier.arrived >= expected)
    {
        barrier.arrived = 0;
        ++barrier.round;
        return;
    }
    while (barrier.round == round)
    {
        block->yield();
        // Threads that have left are not waited for.
        if (&barrier == &block->all && barrier.round == round && barrier.arrived >= block->alive)
        {
            barrier.arrived = 0;
            ++barrier.round;
        }
    }
}

inline void enter()
{
    block->body();
    block->fibers[block->current].done = true;
    --block->alive;
    setcontext(&block->scheduler);
}

inline void runBlock(uint32_t threads, std::function<void()> const& body)
{
    Block own;
    block = &own;
    own.body = body;
    own.fibers.resize(threads);
    own.values.resize(threads);
    own.alive = threads;
    for (Fiber& fiber : own.fibers)
    {
        fiber.stack.resize(64 * 1024);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, enter, 0);
    }
    while (own.alive > 0)
    {
        for (own.current = 0; own.current < threads; ++own.current)
        {
            if (!own.fibers[own.current].done)
            {
                threadIdx = {static_cast<unsigned>(own.current), 0, 0};
                swapcontext(&own.scheduler, &own.fibers[own.current].context);
            }
        }
    }
    block = nullptr;
}

template <typename... Args, size_t... I>
void callWith(void (*kernel)(Args...), void** values, std::index_sequence<I...>)
{
    kernel(*static_cast<std::remove_const_t<Args>*>(values[I])...);
}

// Runs a kernel whose parameters lie at `values`, as for cuLaunchKernel.
template <typename... Args>
void launch(void (*kernel)(Args...), uint32_t grid, uint32_t threads, void** values)
{
    gridDim = dim3(grid);
    blockDim = dim3(threads);
    for (uint32_t b = 0; b < grid; ++b)
    {
        blockIdx = {b, 0, 0};
        runBlock(threads, [&] { callWith(kernel, values, std::index_sequence_for<Args...>{}); });
    }
}

template <typename T>
T exchange(uint32_t mask, T value, uint32_t source)
{
    Block& own = *block;
    auto const self = static_cast<uint32_t>(own.current);
    Barrier& barrier = own.groups[{self / 32, mask}];
    auto const expected = static_cast<uint32_t>(__builtin_popcount(mask));
    std::memcpy(&own.values[self], &value, sizeof(T));
    meet(barrier, expected);
    T result;
    std::memcpy(&result, &own.values[self / 32 * 32 + source], sizeof(T));
    meet(barrier, expected);
    return result;
}
} // namespace host_cuda

inline void __syncthreads()
{
    host_cuda::meet(host_cuda::block->all, host_cuda::block->alive);
}

template <typename T>
T __shfl_xor_sync(uint32_t mask, T value, int step)
{
    return host_cuda::exchange(mask, value, static_cast<uint32_t>(host_cuda::block->current % 32) ^ step);
}

template <typename T>
T __shfl_sync(uint32_t mask, T value, int lane)
{
    return host_cuda::exchange(mask, value, static_cast<uint32_t>(lane));
}

template <typename T>
T __ldcs(T const* from)
{
    return *from;
}
template <typename T>
T __ldg(T const* from)
{
    return *from;
}
template <typename T>
void __stcg(T* to, T const& value)
{
    *to = value;
}
template <typename T>
void __stcs(T* to, T const& value)
{
    *to = value;
}
template <typename T>
T atomicAdd(T* to, T value)
{
    return std::exchange(*to, *to + value);
}
inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t bits)
{
    return static_cast<uint32_t>(((static_cast<uint64_t>(high) << 32) | low) >> (bits & 31));
}
inline uint32_t __umulhi(uint32_t a, uint32_t b)
{
    return static_cast<uint32_t>((static_cast<uint64_t>(a) * b) >> 32);
}
inline uint32_t __float_as_uint(float value)
{
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
}
inline float rsqrtf(float value)
{
    return 1.0F / std::sqrt(value);
}
inline size_t __cvta_generic_to_shared(void const* pointer)
{
    return reinterpret_cast<size_t>(pointer);
}
using std::max;
using std::min;

// All fibers are in one thread of the CPU, so that what is static in it is shared by the block.
#undef __shared__
#define __shared__ thread_local
// What the kernels write in PTX keeps the compiler from something, or is for newer GPUs.
#define asm
#define volatile(...)
