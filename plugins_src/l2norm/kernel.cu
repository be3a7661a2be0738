// Which kernel takes a problem.
#include "l2norm/kernel.h"

#include "l2norm/launch_columns.cuh"
#include "l2norm/launch_rows.cuh"
#include "l2norm/launch_windows.cuh"

namespace trtconv::l2norm
{
namespace
{
template <typename T>
cudaError_t routed(Launch<T> const& l, Problem const& p)
{
    switch (p.route)
    {
    case Route::kColumns: return columnsOf<T>(l, p.lanes);
    case Route::kRows: return rowsOf<T>(l);
    case Route::kWindows: return windowsOf<T>(l, p.lanes, p.cluster);
    case Route::kPackedRows: return packedRowsOf<T>(l, p.lanes, p.threads);
    default: return cudaErrorInvalidConfiguration;
    }
}

// The fastest first: each says so where a problem is not for it.
template <typename T>
cudaError_t chosen(Launch<T> const& l)
{
    cudaError_t status = cudaErrorInvalidConfiguration;
    if (l.column.inner == 1)
    {
        status = packedRowsOf<T>(l, 0, 0);
        status = status == cudaErrorInvalidConfiguration ? rowsOf<T>(l) : status;
    }
    else
    {
        status = windowsOf<T>(l, 0, 0);
    }
    return status == cudaErrorInvalidConfiguration ? columnsOf<T>(l, 0) : status;
}

template <typename T>
cudaError_t launchTyped(Problem const& p, void const* x, void const* scale, void* y, cudaStream_t stream)
{
    Device device;
    if (cudaError_t const status = readDevice(device); status != cudaSuccess)
    {
        return status;
    }
    Launch<T> const l{static_cast<T const*>(x), scale, static_cast<T*>(y),
        {static_cast<int32_t>(p.channels), p.inner, 1, 0, p.epsilon, p.epsMode, p.scaleType}, p.outer, device, stream};
    return p.route == Route::kAuto ? chosen(l) : routed(l, p);
}
} // namespace

cudaError_t launch(Problem const& problem, void const* x, void const* scale, void* y, cudaStream_t stream)
{
    if (problem.outer < 0 || problem.channels < 0 || problem.channels > kMaxGrid || problem.inner < 0
        || problem.epsMode < 0 || problem.epsMode > 2)
    {
        return cudaErrorInvalidValue;
    }
    if (problem.outer == 0 || problem.channels == 0 || problem.inner == 0)
    {
        return cudaSuccess;
    }
    return dispatchElement(problem.type,
        [&](auto element) { return launchTyped<decltype(element)>(problem, x, scale, y, stream); });
}
} // namespace trtconv::l2norm
