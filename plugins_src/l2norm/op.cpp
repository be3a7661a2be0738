#include "adapters/op.h"
#include "adapters/shapes.h"
#include "l2norm/kernel.h"
#include "trtconv_descriptions.h"

namespace trtconv
{
namespace
{
using l2norm::Attributes;

bool shapes(void const* attributes, nvinfer1::DimsExprs const* inputs, nvinfer1::DimsExprs* outputs, nvinfer1::IExprBuilder&)
{
    auto const& a = *static_cast<Attributes const*>(attributes);
    if (inputs[0].nbDims <= a.axis || !mayBeVectorOf(inputs[1], inputs[0].d[a.axis]))
    {
        return false;
    }
    outputs[0] = inputs[0];
    return true;
}

int64_t workspace(void const*, TensorView const*)
{
    return 0;
}

cudaError_t enqueue(void const* attributes, TensorView const* in, TensorView const* out, void*, cudaStream_t stream)
{
    auto const& a = *static_cast<Attributes const*>(attributes);
    TensorView const& x = in[0];
    l2norm::Problem p;
    p.type = x.type;
    p.scaleType = in[1].type;
    p.outer = x.volume(0, a.axis);
    p.channels = x.dims[a.axis];
    p.inner = x.volume(a.axis + 1, x.rank);
    p.epsilon = a.epsilon;
    p.epsMode = a.eps_mode;
    return l2norm::launch(p, x.data, in[1].data, out[0].data, stream);
}

constexpr Attributes kDefaults;
} // namespace

extern Op const kL2Norm{&l2norm::kSignature, &kDefaults, shapes, workspace, enqueue};
} // namespace trtconv
