// Buffers for checks: random inputs, poisoned outputs with guards on both sides, and comparison in double.
#pragma once

#include "common/element.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace trtconv::checks
{
inline void must(cudaError_t status, char const* what)
{
    if (status != cudaSuccess)
    {
        std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
        std::exit(2);
    }
}

inline double tolerance(ElementType type)
{
    return type == ElementType::kFloat32 ? 1e-5 : (type == ElementType::kFloat16 ? 2e-3 : 1.6e-2);
}

inline char const* nameOf(ElementType type)
{
    return type == ElementType::kFloat32 ? "fp32" : (type == ElementType::kFloat16 ? "fp16" : "bf16");
}

inline double read(ElementType type, void const* memory, int64_t index)
{
    switch (type)
    {
    case ElementType::kFloat16: return __half2float(static_cast<__half const*>(memory)[index]);
    case ElementType::kBFloat16: return __bfloat162float(static_cast<__nv_bfloat16 const*>(memory)[index]);
    default: return static_cast<float const*>(memory)[index];
    }
}

inline void write(ElementType type, void* memory, int64_t index, float value)
{
    switch (type)
    {
    case ElementType::kFloat16: static_cast<__half*>(memory)[index] = __float2half(value); break;
    case ElementType::kBFloat16: static_cast<__nv_bfloat16*>(memory)[index] = __float2bfloat16(value); break;
    default: static_cast<float*>(memory)[index] = value; break;
    }
}

// `count` random values on the device, `skip` elements into an allocation that ends with the last value.
class Input
{
public:
    Input(ElementType type, int64_t count, uint32_t seed, float offset, int64_t skip)
        : values(static_cast<size_t>(count))
        , mBytes(static_cast<size_t>((count + skip) * sizeOf(type)))
    {
        std::mt19937 engine(seed);
        std::normal_distribution<float> normal(offset, 1.0F);
        std::vector<unsigned char> host(mBytes + 16);
        for (int64_t i = 0; i < count + skip; ++i)
        {
            write(type, host.data(), i, normal(engine));
        }
        for (int64_t i = 0; i < count; ++i)
        {
            values[static_cast<size_t>(i)] = read(type, host.data(), skip + i);
        }
        must(cudaMalloc(&mMemory, mBytes == 0 ? 1 : mBytes), "cudaMalloc");
        must(cudaMemcpy(mMemory, host.data(), mBytes, cudaMemcpyHostToDevice), "cudaMemcpy");
        data = static_cast<unsigned char*>(mMemory) + skip * sizeOf(type);
    }
    ~Input()
    {
        cudaFree(mMemory);
    }
    Input(Input const&) = delete;
    Input& operator=(Input const&) = delete;

    std::vector<double> values;
    void* data{nullptr};

private:
    size_t mBytes;
    void* mMemory{nullptr};
};

// An output full of 0xFF (a NaN in every type), with guard bytes before and after.
class Output
{
public:
    Output(ElementType type, int64_t count, int64_t skip)
        : mType(type)
        , mCount(count)
        , mFront(static_cast<size_t>(kGuard + skip * sizeOf(type)))
        , mHost(mFront + static_cast<size_t>(count * sizeOf(type)) + kGuard, 0xFF)
    {
        must(cudaMalloc(&mMemory, mHost.size()), "cudaMalloc");
        must(cudaMemcpy(mMemory, mHost.data(), mHost.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
        data = static_cast<unsigned char*>(mMemory) + mFront;
    }
    ~Output()
    {
        cudaFree(mMemory);
    }
    Output(Output const&) = delete;
    Output& operator=(Output const&) = delete;

    // The largest difference over the largest value; infinite where something is missing, NaN or written outside.
    double error(std::vector<double> const& wanted)
    {
        must(cudaDeviceSynchronize(), "kernel");
        must(cudaMemcpy(mHost.data(), mMemory, mHost.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
        size_t const end = mFront + static_cast<size_t>(mCount * sizeOf(mType));
        for (size_t i = 0; i < mHost.size(); ++i)
        {
            if ((i < mFront || i >= end) && mHost[i] != 0xFF)
            {
                return INFINITY;
            }
        }
        double worst = 0.0;
        double largest = 1e-30;
        for (int64_t i = 0; i < mCount; ++i)
        {
            double const got = read(mType, mHost.data() + mFront, i);
            double const want = wanted[static_cast<size_t>(i)];
            if (!std::isfinite(got))
            {
                return INFINITY;
            }
            worst = std::fmax(worst, std::fabs(got - want));
            largest = std::fmax(largest, std::fabs(want));
        }
        return worst / largest;
    }

    void* data{nullptr};

private:
    static constexpr int64_t kGuard = 256;
    ElementType mType;
    int64_t mCount;
    size_t mFront;
    std::vector<unsigned char> mHost;
    void* mMemory{nullptr};
};
} // namespace trtconv::checks
