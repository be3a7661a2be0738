// Depthwise convolution of x[batch, height, width, channels] with stride 1 and as much zero padding as keeps the size, then
// layer normalisation over the channels.
#pragma once

#include "common/element.h"

#include <cuda_runtime_api.h>

namespace trtconv::depthwise_conv_layer_norm
{
struct Problem
{
    // Of every tensor.
    ElementType type{ElementType::kFloat32};
    int64_t batch{0};
    int64_t height{0};
    int64_t width{0};
    int64_t channels{0};
    // Rows and columns of the kernel: 3, 5 or 7.
    int32_t size{0};
    float epsilon{0};
    // What follows is for measurements and tests; 0 chooses. The number of an entry of kTiles in launch.cuh, from 1 on, and
    // how many tiles share a block; cudaErrorInvalidConfiguration where a problem does not fit them.
    int32_t tile{0};
    int32_t groups{0};
};

// weight[size, size, channels], bias, scale and shift[channels]. The last two are those of the normalisation.
cudaError_t launch(Problem const& problem, void const* x, void const* weight, void const* bias, void const* scale,
    void const* shift, void* y, cudaStream_t stream);
} // namespace trtconv::depthwise_conv_layer_norm
