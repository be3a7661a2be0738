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
    // Lanes of a warp that lie side by side along `inner`; 0 chooses. For measurements.
    int32_t lanes{0};
    // Tiles that a block copies ahead; 0: blocks do one tile each; -1 chooses. For measurements and tests.
    int32_t depth{-1};
    Route route{Route::kAuto};
};

cudaError_t launch(Problem const& problem, void const* x, void const* scale, void* y, cudaStream_t stream);
} // namespace trtconv::l2norm
