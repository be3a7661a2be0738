// TRTCONV_CHANNELS, TRTCONV_WIDTH, TRTCONV_ACROSS (tiles beside one another), TRTCONV_PACK, TRTCONV_ROWS and TRTCONV_COLUMNS
// (a thread's channels and positions), TRTCONV_GELU (true or false), TRTCONV_THREADS.
#include "aot/begin.cuh"
#include "depthwise_conv/tile.cuh"
#include "aot/end.cuh"

using namespace trtconv;
using namespace trtconv::depthwise_conv;
using Element = TRTCONV_ELEMENT;

extern "C" __global__ void __launch_bounds__(TRTCONV_THREADS) TRTCONV_ENTRY(Element const* x, Element const* weight,
    Element const* bias, int32_t height, int32_t down, int32_t threads, Element* y)
{
    Image const image{height, TRTCONV_WIDTH, TRTCONV_CHANNELS, TRTCONV_CHANNELS / TRTCONV_PACK, TRTCONV_ACROSS,
        static_cast<uint32_t>(down), static_cast<uint32_t>(threads)};
    convolveTile<Element, TRTCONV_PACK, TRTCONV_ROWS, TRTCONV_COLUMNS, TRTCONV_GELU>(x, weight, bias, y, image);
}
