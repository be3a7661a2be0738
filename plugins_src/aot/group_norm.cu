// TRTCONV_CHANNELS, TRTCONV_EPSILON, TRTCONV_MIXED; TRTCONV_PACK elements to an access. A block takes an image.
#include "aot/begin.cuh"
#include "group_norm/images.cuh"
#include "aot/end.cuh"

using namespace trtconv;
using namespace trtconv::group_norm;
using Element = TRTCONV_ELEMENT;

extern "C" __global__ void __launch_bounds__(kMostThreads) TRTCONV_ENTRY(
    Element const* x, Element const* scale, Element const* shift, int32_t batch, int32_t height, int32_t width, Element* y)
{
    int32_t const packs = height * width * (TRTCONV_CHANNELS / TRTCONV_PACK);
    if (batch == 0 || packs == 0)
    {
        return; // an empty tensor has one block all the same
    }
    Images const p{height, width, TRTCONV_CHANNELS, packs, packs, 1, TRTCONV_EPSILON};
    normalizeImage<Element, TRTCONV_PACK, 0, TRTCONV_MIXED != 0>(x, scale, shift, y, p);
}
