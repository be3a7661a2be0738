// How elements are spread over threads.
#include "reflection_pad/kernel.h"

#include "common/device.h"
#include "common/measured.h"
#include "reflection_pad/padding.cuh"

namespace trtconv::reflection_pad
{
namespace
{
// Indices of up to this many elements, and of a block's more, fit 31 bits.
constexpr int64_t kMostNarrow = kMaxGrid - 65536;

template <typename T>
cudaError_t launchTyped(Layout const& l, Route route, T const* x, T* y, cudaStream_t stream)
{
    constexpr int64_t V = kVectorBytes / static_cast<int64_t>(sizeof(T));
    bool const aligned = widestPack<T>(0, x, y) * sizeof(T) == kVectorBytes;
    bool const narrow = l.elements <= kMostNarrow;
    if (route == Route::kAuto)
    {
        Route const best = narrow ? Route(measured::padRoute(sizeof(T))) : Route::kGranules;
        route = aligned ? best : Route::kElements;
    }
    else if (route != Route::kElements && (!aligned || (!narrow && route != Route::kGranules)))
    {
        return cudaErrorInvalidConfiguration;
    }
    auto const start = [&](auto kernel, int64_t each) {
        int64_t const blocks = ceilDiv(l.elements, kThreads * each);
        if (blocks > kMaxGrid)
        {
            return cudaErrorInvalidConfiguration;
        }
        kernel<<<static_cast<uint32_t>(blocks), kThreads, 0, stream>>>(x, y, l);
        return cudaGetLastError();
    };
    switch (route)
    {
    case Route::kGranules:
        return narrow ? start(padGranules<T, 2, true>, 2 * V) : start(padGranules<T, 2, false>, 2 * V);
    case Route::kGathered: return start(padGathered<T, 2>, 2 * V);
    default: return start(padElements<T>, 1);
    }
}
} // namespace

cudaError_t launch(Problem const& p, void const* x, void* y, cudaStream_t stream)
{
    bool const sane = p.planes >= 0 && p.top >= 0 && p.left >= 0 && p.bottom >= 0 && p.right >= 0;
    auto const fits = [](int64_t pad, int64_t size) { return pad < size || (pad == 0 && size == 0); };
    if (!sane || !fits(p.top, p.height) || !fits(p.bottom, p.height) || !fits(p.left, p.width) || !fits(p.right, p.width))
    {
        return cudaErrorInvalidValue;
    }
    int64_t const outHeight = p.height + p.top + p.bottom;
    int64_t const outWidth = p.width + p.left + p.right;
    int64_t const elements = p.planes * outHeight * outWidth;
    if (elements == 0)
    {
        return cudaSuccess;
    }
    bool const narrow = elements <= kMostNarrow;
    Layout const l{Divider(narrow ? outWidth : 1), Divider(narrow ? outHeight : 1), p.planes, p.height, p.width,
        outHeight, outWidth, p.top, p.left, elements};
    // Values are only moved, so that their width is all that matters.
    if (sizeOf(p.type) == 4)
    {
        return launchTyped(l, p.route, static_cast<uint32_t const*>(x), static_cast<uint32_t*>(y), stream);
    }
    return launchTyped(l, p.route, static_cast<uint16_t const*>(x), static_cast<uint16_t*>(y), stream);
}
} // namespace trtconv::reflection_pad
