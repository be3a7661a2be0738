// What trtconv's adapters need of the plugin: the shape rule in TensorRT's expressions, the workspace, the launch.
#include "adapters/op.h"
#include "kernel.h"
#include "trtconv_descriptions.h"

namespace trtconv::stn_sampler
{
namespace
{
// Where both sizes are known while the engine is built; the launch checks the others.
bool differ(nvinfer1::IDimensionExpr const* a, nvinfer1::IDimensionExpr const* b)
{
    return a->isConstant() && b->isConstant() && a->getConstantValue() != b->getConstantValue();
}

bool shapes(void const*, nvinfer1::DimsExprs const* inputs, nvinfer1::DimsExprs* outputs, nvinfer1::IExprBuilder& builder)
{
    nvinfer1::DimsExprs const& x = inputs[0];
    nvinfer1::DimsExprs const& theta = inputs[1];
    if (x.nbDims != 4 || theta.nbDims != 3 || differ(theta.d[0], x.d[0]) || differ(theta.d[1], builder.constant(2))
        || differ(theta.d[2], builder.constant(3)))
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
    TensorView const& theta = in[1];
    if (theta.dims[0] != x.dims[0] || theta.dims[1] != 2 || theta.dims[2] != 3)
    {
        return cudaErrorInvalidValue;
    }
    Problem p;
    p.type = x.type;
    p.thetaType = theta.type;
    p.batch = x.dims[0];
    p.channels = x.dims[1];
    p.height = x.dims[2];
    p.width = x.dims[3];
    p.alignCorners = static_cast<Attributes const*>(attributes)->align_corners != 0;
    return launch(p, x.data, theta.data, out[0].data, stream);
}

constexpr Attributes kDefaults;
} // namespace

// The name that `trtconv plugins build --source` looks for: kOp in trtconv::<folder of the description>.
extern Op const kOp{&kSignature, &kDefaults, shapes, workspace, enqueue};
} // namespace trtconv::stn_sampler
