// TRTCONV_SIZE (rows of the kernel), TRTCONV_CHANNELS, TRTCONV_EPSILON, TRTCONV_PACK, TRTCONV_ROWS and TRTCONV_COLUMNS (a
// thread's channels and positions), TRTCONV_GROUPS (tiles of a block), TRTCONV_THREADS.
#include "aot/begin.cuh"
#include "depthwise_conv_layer_norm/tiles.cuh"
#include "aot/end.cuh"

using namespace trtconv;
using namespace trtconv::depthwise_conv_layer_norm;
using Element = TRTCONV_ELEMENT;

extern "C" __global__ void __launch_bounds__(TRTCONV_THREADS) TRTCONV_ENTRY(Element const* x, Element const* weight,
    Element const* bias, Element const* scale, Element const* shift, int32_t height, int32_t width, int32_t across, int32_t down,
    int32_t count, Element* y)
{
    Image const image{height, width, TRTCONV_CHANNELS, TRTCONV_CHANNELS / TRTCONV_PACK, TRTCONV_GROUPS, across, down,
        static_cast<uint32_t>(count), TRTCONV_EPSILON};
    if (count == 0)
    {
        return; // an empty tensor has one block all the same
    }
    tiles<Element, TRTCONV_SIZE, TRTCONV_PACK, TRTCONV_ROWS, TRTCONV_COLUMNS, TRTCONV_THREADS>(
        x, weight, bias, scale, shift, y, image);
}
