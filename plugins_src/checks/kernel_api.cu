// The kernels behind a C interface, so that measurements can call them on another program's memory without TensorRT.
#include "adaptive_pool/kernel.h"
#include "attention/kernel.h"
#include "depthwise_conv/kernel.h"
#include "depthwise_conv_layer_norm/kernel.h"
#include "group_norm/kernel.h"
#include "instance_norm/kernel.h"
#include "l2norm/kernel.h"
#include "reflection_pad/kernel.h"

using trtconv::ElementType;

extern "C"
{
int trtconv_l2norm(int type, int scaleType, void const* x, void const* scale, void* y, int64_t outer, int64_t channels,
    int64_t inner, float epsilon, int mode, int route, int lanes, int cluster, int threads,
    cudaStream_t stream)
{
    trtconv::l2norm::Problem const p{ElementType(type), ElementType(scaleType), outer, channels, inner, epsilon, mode,
        trtconv::l2norm::Route(route), lanes, cluster, threads};
    return trtconv::l2norm::launch(p, x, scale, y, stream);
}

int64_t trtconv_instance_norm_workspace(int type, int64_t planes, int64_t area)
{
    return trtconv::instance_norm::workspaceBytes(ElementType(type), planes, area);
}

int trtconv_instance_norm(int type, int parameterType, void const* x, void const* scale, void const* bias, void* y,
    void* workspace, int64_t planes, int64_t channels, int64_t area, float epsilon, int relu, int route, int cluster,
    cudaStream_t stream)
{
    trtconv::instance_norm::Problem const p{ElementType(type), ElementType(parameterType), planes, channels, area,
        epsilon, relu != 0, trtconv::instance_norm::Route(route), cluster};
    return trtconv::instance_norm::launch(p, x, scale, bias, y, workspace, stream);
}

int64_t trtconv_group_norm_workspace(int64_t batch)
{
    return trtconv::group_norm::workspaceBytes(batch);
}

int trtconv_group_norm(int type, void const* x, void const* scale, void const* shift, void* y, void* workspace, int64_t batch,
    int64_t height, int64_t width, int64_t channels, float epsilon, int mixed, int route, cudaStream_t stream)
{
    trtconv::group_norm::Problem const p{ElementType(type), batch, height, width, channels, epsilon, mixed != 0,
        trtconv::group_norm::Route(route)};
    return trtconv::group_norm::launch(p, x, scale, shift, y, workspace, stream);
}

int trtconv_reflection_pad(int type, void const* x, void* y, int64_t planes, int64_t height, int64_t width, int top,
    int left, int bottom, int right, int route, cudaStream_t stream)
{
    trtconv::reflection_pad::Problem const p{ElementType(type), planes, height, width, top, left, bottom, right,
        trtconv::reflection_pad::Route(route)};
    return trtconv::reflection_pad::launch(p, x, y, stream);
}

int trtconv_adaptive_pool(int type, void const* x, void* y, int64_t planes, int64_t height, int64_t width,
    int outHeight, int outWidth, int maximum, cudaStream_t stream)
{
    trtconv::adaptive_pool::Problem const p{
        ElementType(type), planes, height, width, outHeight, outWidth, maximum != 0};
    return trtconv::adaptive_pool::launch(p, x, y, stream);
}

int trtconv_depthwise_conv_layer_norm(int type, void const* x, void const* weight, void const* bias, void const* scale,
    void const* shift, void* y, int64_t batch, int64_t height, int64_t width, int64_t channels, int size, float epsilon,
    int tile, int groups, cudaStream_t stream)
{
    trtconv::depthwise_conv_layer_norm::Problem const p{
        ElementType(type), batch, height, width, channels, size, epsilon, tile, groups};
    return trtconv::depthwise_conv_layer_norm::launch(p, x, weight, bias, scale, shift, y, stream);
}

// With GELU.
int trtconv_depthwise_conv(int type, void const* x, void const* weight, void const* bias, void* y, int64_t batch,
    int64_t height, int64_t width, int64_t channels, cudaStream_t stream)
{
    trtconv::depthwise_conv::Problem const p{ElementType(type), batch, height, width, channels, true};
    return trtconv::depthwise_conv::launch(p, x, weight, bias, y, stream);
}

// Rows that hold query, key and value beside one another; a bias for each group, head, query and key.
int trtconv_attention(int type, void const* x, void const* bias, void* y, int64_t batch, int64_t length, int heads, int size,
    float scale, int64_t groups, cudaStream_t stream)
{
    int64_t const width = int64_t{heads} * size;
    trtconv::attention::Problem p;
    p.type = ElementType(type);
    p.batch = batch;
    p.queries = p.keys = length;
    p.heads = heads;
    p.size = size;
    p.scale = scale;
    for (int i = 0; i < 3; ++i)
    {
        p.widths[i] = 3 * width;
        p.offsets[i] = i * width;
    }
    if (groups > 0)
    {
        p.bias[0] = groups;
        p.bias[1] = heads;
        p.bias[2] = p.bias[3] = length;
    }
    return trtconv::attention::launch(p, x, x, x, bias, y, stream);
}
}
