// TRTCONV_TOP, TRTCONV_LEFT, TRTCONV_BOTTOM, TRTCONV_RIGHT; TRTCONV_HEIGHT and TRTCONV_WIDTH where they are fixed.
// y has fewer than 2^31 - 65536 elements.
#include "aot/begin.cuh"
#include "common/divider.cuh"
#include "reflection_pad/padding.cuh"
#include "aot/end.cuh"

#ifndef TRTCONV_HEIGHT
#define TRTCONV_HEIGHT height
#endif
#ifndef TRTCONV_WIDTH
#define TRTCONV_WIDTH width
#endif

using namespace trtconv;
using namespace trtconv::reflection_pad;

// Values are only moved, so that their width is all that matters.
using Element = std::conditional_t<sizeof(TRTCONV_ELEMENT) == 4, uint32_t, uint16_t>;

extern "C" __global__ void __launch_bounds__(kThreads)
    TRTCONV_ENTRY(Element const* x, int32_t planes, int32_t height, int32_t width, Element* y)
{
    int64_t const outHeight = int64_t{TRTCONV_HEIGHT} + TRTCONV_TOP + TRTCONV_BOTTOM;
    int64_t const outWidth = int64_t{TRTCONV_WIDTH} + TRTCONV_LEFT + TRTCONV_RIGHT;
    Layout const l{Divider(outWidth), Divider(outHeight), planes, TRTCONV_HEIGHT, TRTCONV_WIDTH, outHeight, outWidth, TRTCONV_TOP,
        TRTCONV_LEFT, planes * outHeight * outWidth};
    // As measured::padRoute chooses for the library.
    if constexpr (sizeof(Element) == 4)
    {
        padGathered<Element, 2>(x, y, l);
    }
    else
    {
        padGranules<Element, 2, true>(x, y, l);
    }
}
