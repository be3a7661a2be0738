// Instance normalisation of x[planes, area], plane p in channel p % channels, with scale, bias and an optional ReLU.
#pragma once

#include "common/element.h"

#include <cuda_runtime_api.h>

namespace trtconv::instance_norm
{
// How a plane is held between its statistics and its scaling. kAuto is the fastest that fits; the others are for tests.
enum class Route : int32_t
{
    kAuto = 0,
    kWarp = 1,    // registers of one warp
    kBlock = 2,   // registers of one block
    kCluster = 3, // registers of a thread-block cluster (compute capability 9.0 and later)
    kSplit = 4,       // not held: statistics, then a second read, with a kernel between them
    kWarpWide = 5,    // kWarp with packs of 16 bytes for every type
    kTeam = 7,        // registers of a block of four warps
    kSplitFused = 11, // kSplit without a kernel between the reads, for planes of up to 1024 parts
    kEvenWarp = 14,   // registers of one warp that the plane fills exactly
};

struct Problem
{
    ElementType type{ElementType::kFloat32};
    ElementType parameterType{ElementType::kFloat32};
    int64_t planes{0};
    int64_t channels{0};
    int64_t area{0};
    float epsilon{0};
    bool relu{false};
    Route route{Route::kAuto};
    // Blocks in a cluster for Route::kCluster; 0 chooses.
    int32_t cluster{0};
};

// Bytes of device memory that `launch` needs. It grows with planes and area, so that the size for the largest shape
// serves every smaller one.
int64_t workspaceBytes(ElementType type, int64_t planes, int64_t area) noexcept;

cudaError_t launch(Problem const& problem, void const* x, void const* scale, void const* bias, void* y, void* workspace,
    cudaStream_t stream);
} // namespace trtconv::instance_norm
