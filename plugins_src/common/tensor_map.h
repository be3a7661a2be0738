// Descriptions of tensors for the copy engine of compute capability 9.0. The driver writes them; it is asked for the
// function at run time, so that nothing is linked to it.
#pragma once

#include "common/element.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#if CUDART_VERSION >= 12050
#define TRTCONV_TENSOR_MAP 1
#else
#define TRTCONV_TENSOR_MAP 0
struct CUtensorMap
{
};
#endif

namespace trtconv
{
// x[outer, rows, columns] moved in boxes of [1, boxRows, boxColumns]. cudaErrorInvalidConfiguration where the driver or
// the tensor does not allow it: columns times the element's size and the address have to be multiples of 16 bytes.
inline cudaError_t describeTensor(CUtensorMap& map, void const* data, ElementType type, int64_t outer, int64_t rows,
    int64_t columns, int32_t boxRows, int32_t boxColumns) noexcept
{
#if TRTCONV_TENSOR_MAP
    using Encode = decltype(&cuTensorMapEncodeTiled);
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    cudaError_t const status
        = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
    if (status != cudaSuccess || found != cudaDriverEntryPointSuccess || entry == nullptr)
    {
        (void) cudaGetLastError();
        return cudaErrorInvalidConfiguration;
    }
    auto const size = static_cast<cuuint64_t>(sizeOf(type));
    cuuint64_t const dims[3] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows),
        static_cast<cuuint64_t>(outer)};
    cuuint64_t const strides[2] = {dims[0] * size, dims[0] * dims[1] * size};
    cuuint32_t const box[3] = {static_cast<cuuint32_t>(boxColumns), static_cast<cuuint32_t>(boxRows), 1};
    cuuint32_t const steps[3] = {1, 1, 1};
    // Values are only moved: the width is all that matters.
    auto const kind = size == 4 ? CU_TENSOR_MAP_DATA_TYPE_UINT32 : CU_TENSOR_MAP_DATA_TYPE_UINT16;
    CUresult const result = reinterpret_cast<Encode>(entry)(&map, kind, 3, const_cast<void*>(data), dims, strides, box,
        steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidConfiguration;
#else
    (void) map;
    (void) data;
    (void) type;
    (void) (outer + rows + columns + boxRows + boxColumns);
    return cudaErrorInvalidConfiguration;
#endif
}
} // namespace trtconv
