// Element types and tensors as the kernels' callers see them. No TensorRT and no CUDA types.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trtconv
{
// The numbers are part of the C interface in checks/kernel_api.cu.
enum class ElementType : int32_t
{
    kFloat32 = 0,
    kFloat16 = 1,
    kBFloat16 = 2,
    kUnsupported = -1,
};

inline constexpr int32_t kElementTypes = 3;

constexpr int64_t sizeOf(ElementType type) noexcept
{
    return type == ElementType::kFloat32 ? 4 : 2;
}

inline constexpr int32_t kMaxRank = 8;

// A dense tensor in row-major order, unless it has a pitch. `data` is null where only the shape matters.
struct TensorView
{
    void* data{nullptr};
    ElementType type{ElementType::kUnsupported};
    int32_t rank{0};
    int64_t dims[kMaxRank]{};
    // Where the channels of an image [N, C, H, W] lie last, elements from a position to the next; 0 in row-major order.
    int64_t pitch{0};

    // The product of dims[begin, end).
    int64_t volume(int32_t begin, int32_t end) const noexcept
    {
        int64_t product = 1;
        for (int32_t i = begin; i < end; ++i)
        {
            product *= dims[i];
        }
        return product;
    }
};
} // namespace trtconv
