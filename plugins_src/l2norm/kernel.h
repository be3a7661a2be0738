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
    kColumns = 1,    // tiles of packs of any width in registers, or read twice where they do not fit
    kRows = 2,       // inner == 1: a warp to a row, packs of any width
    kWindows = 3,    // tiles of granules of 16 bytes in registers, rows at any alignment, a block or a cluster to each
    kPackedRows = 4, // inner == 1, rows of whole granules: one or more warps to a row, the scale in granules too
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
    Route route{Route::kAuto};
    // What follows is for measurements and tests, with a route; 0 chooses.
    // Lanes that lie side by side along `inner`, or that take a row.
    int32_t lanes{0};
    // Blocks that share a tile's channels (kWindows), and threads of a block (kPackedRows).
    int32_t cluster{0};
    int32_t threads{0};
};

cudaError_t launch(Problem const& problem, void const* x, void const* scale, void* y, cudaStream_t stream);
} // namespace trtconv::l2norm
