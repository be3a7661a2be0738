// Normalisation of each image x[height, width, channels] of a batch as one group, with a scale and a shift to each channel;
// or x plus what an average over 3 x 3 neighbours changes of it, which is how PoolFormer mixes tokens.
#pragma once

#include "common/element.h"

#include <cuda_runtime_api.h>

namespace trtconv::group_norm
{
// How many blocks an image has. kAuto is the faster way; the others are for tests and measurements.
enum class Route : int32_t
{
    kAuto = 0,
    kImages = 1,      // those of one cluster, which read it once
    kParts = 2,       // any number, in two kernels, which read it twice
    kPartsInTurn = 3, // kParts, where the second kernel does not begin before the first has ended
};

struct Problem
{
    // Of every tensor.
    ElementType type{ElementType::kFloat32};
    int64_t batch{0};
    int64_t height{0};
    int64_t width{0};
    int64_t channels{0};
    float epsilon{1e-5F};
    // y = x + (mean of the neighbours of u - u) * scale, u being x normalised, in place of y = u * scale + shift.
    bool mixed{false};
    Route route{Route::kAuto};
};

// Bytes of device memory that `launch` needs, which grow with the number of images.
int64_t workspaceBytes(int64_t batch) noexcept;

// scale[channels], shift[channels]; the shift is not read where neighbours are mixed.
cudaError_t launch(Problem const& problem, void const* x, void const* scale, void const* shift, void* y, void* workspace,
    cudaStream_t stream);
} // namespace trtconv::group_norm
