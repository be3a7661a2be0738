// The limits of the current device that launches depend on, read at every launch: nothing is cached in globals.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace trtconv
{
struct Device
{
    int32_t multiprocessors{1};
    int32_t major{0};
    int32_t minor{0};
    int32_t sharedPerBlock{48 * 1024};
    int32_t cacheBytes{0};
};

inline cudaError_t readDevice(Device& device) noexcept
{
    int32_t id = 0;
    cudaError_t status = cudaGetDevice(&id);
    struct Query
    {
        cudaDeviceAttr attribute;
        int32_t* value;
    };
    Query const queries[] = {
        {cudaDevAttrMultiProcessorCount, &device.multiprocessors},
        {cudaDevAttrComputeCapabilityMajor, &device.major},
        {cudaDevAttrComputeCapabilityMinor, &device.minor},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, &device.sharedPerBlock},
        {cudaDevAttrL2CacheSize, &device.cacheBytes},
    };
    for (Query const& query : queries)
    {
        if (status == cudaSuccess)
        {
            status = cudaDeviceGetAttribute(query.value, query.attribute, id);
        }
    }
    return status;
}

constexpr int64_t ceilDiv(int64_t value, int64_t by) noexcept
{
    return (value + by - 1) / by;
}

constexpr int64_t roundUp(int64_t value, int64_t to) noexcept
{
    return ceilDiv(value, to) * to;
}

inline constexpr int64_t kMaxGrid = 2147483647;
} // namespace trtconv
