#include "adapters/op.h"
#include "adapters/shapes.h"
#include "layer_norm/kernel.h"
#include "trtconv_descriptions.h"

namespace trtconv
{
namespace
{
using layer_norm::Attributes;

bool shapes(void const*, nvinfer1::DimsExprs const* inputs, nvinfer1::DimsExprs* outputs, nvinfer1::IExprBuilder&)
{
    nvinfer1::DimsExprs const& x = inputs[0];
    if (x.nbDims < 1)
    {
        return false;
    }
    nvinfer1::IDimensionExpr const* const channels = x.d[x.nbDims - 1];
    if (!mayBeVectorOf(inputs[1], channels) || !mayBeVectorOf(inputs[2], channels))
    {
        return false;
    }
    outputs[0] = x;
    return true;
}

int64_t workspace(void const*, TensorView const*)
{
    return 0;
}

cudaError_t enqueue(void const* attributes, TensorView const* in, TensorView const* out, void*, cudaStream_t stream)
{
    TensorView const& x = in[0];
    layer_norm::Problem p;
    p.type = x.type;
    p.rows = x.volume(0, x.rank - 1);
    p.channels = x.dims[x.rank - 1];
    p.epsilon = static_cast<Attributes const*>(attributes)->epsilon;
    if (in[1].dims[0] != p.channels || in[2].dims[0] != p.channels)
    {
        return cudaErrorInvalidValue;
    }
    return layer_norm::launch(p, x.data, in[1].data, in[2].data, out[0].data, stream);
}

constexpr Attributes kDefaults;
} // namespace

extern Op const kLayerNorm{&layer_norm::kSignature, &kDefaults, shapes, workspace, enqueue};
} // namespace trtconv
