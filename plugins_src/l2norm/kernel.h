// L2 normalisation of x[outer, channels, inner] over the middle axis, times scale[channels].
#pragma once

#include "common/element.h"

#include <cuda_runtime_api.h>

namespace trtconv::l2norm
{
// Which kernel takes it. kAuto chooses; the others are for measurements and tests, and give
// cudaErrorInvalidConfiguration for a problem that they do not fit.
enum class Route : int32_t
{
    kAuto = 0,
    kColumns = 1,      // tiles in registers, or read twice where they do not fit
    kRows = 2,         // inner == 1: a warp to a row
    kStreamedRows = 3, // the same with warps that stay and load the next row meanwhile
    kBulk = 4,         // tiles by the tensor copy engine (compute capability 9.0 and later)
    kRagged4 = 5,      // rows at any alignment, runs of 4 granules of 16 bytes
    kRagged8 = 6,
    kRagged16 = 7,
    kWindows = 8,      // rows at any alignment in granules of 16 bytes, held in registers
    kHaloWindows = 9,  // the same with granules at both ends that are read by two tiles and written by one
    kPackedRows = 10,  // inner == 1, rows of whole granules: one or more warps to a row, the scale in granules too
    kPlainRows = 11,   // the same with loads that may stay in the caches
};

struct Problem
{
    ElementType type{ElementType::kFloat32};
    ElementType scaleType{ElementType::kFloat32};
    int64_t outer{0};
    int64_t channels{0};
    int64_t inner{0};
    float epsilon{0};
    // 0: x / (sqrt(s) + eps); 1: x / sqrt(s + eps); 2: x / max(sqrt(s), eps).
    int32_t epsMode{0};
    // Lanes of a warp that lie side by side along `inner`, or of a row; 0 chooses. For measurements.
    int32_t lanes{0};
    // Tiles that a block copies ahead; 0: blocks do one tile each; -1 chooses. For measurements and tests.
    int32_t depth{-1};
    Route route{Route::kAuto};
    // Blocks that share a tile's channels, and threads of one, of the routes from kWindows on; 0 chooses. For measurements.
    int32_t cluster{0};
    int32_t threads{0};
    // 1: the loads of kWindows are the first to leave L2; 2: its stores. For measurements, with depth 1.
    int32_t leaving{0};
};

cudaError_t launch(Problem const& problem, void const* x, void const* scale, void* y, cudaStream_t stream);
} // namespace trtconv::l2norm
