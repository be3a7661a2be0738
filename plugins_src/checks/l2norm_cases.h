// L2Norm against float64, by every route.
#pragma once

#include "checks/tally.h"
#include "l2norm/kernel.h"

namespace trtconv::checks
{
inline void checkL2(Tally& tally, ElementType type, int64_t outer, int64_t channels, int64_t inner, int32_t mode, int64_t skip,
    l2norm::Route route = l2norm::Route::kAuto, int32_t lanes = 0, int32_t threads = 0, int32_t cluster = 0)
{
    ElementType const scaleType = mode == 1 ? ElementType::kFloat32 : type;
    Input const x(type, outer * channels * inner, 1, 0.0F, skip);
    Input const scale(scaleType, channels, 2, 1.0F, 0);
    Output y(type, outer * channels * inner, skip);
    l2norm::Problem const p{type, scaleType, outer, channels, inner, 0.5F, mode, route, lanes, cluster,
        threads};
    cudaError_t const status = l2norm::launch(p, x.data, scale.data, y.data, nullptr);
    if (status == cudaErrorInvalidConfiguration && route != l2norm::Route::kAuto)
    {
        return; // the route is not for this problem or device
    }
    must(status, "l2norm");
    std::vector<double> wanted(x.values.size());
    for (int64_t o = 0; o < outer; ++o)
    {
        for (int64_t i = 0; i < inner; ++i)
        {
            int64_t const base = o * channels * inner + i;
            double squares = 0.0;
            for (int64_t c = 0; c < channels; ++c)
            {
                squares += x.values[base + c * inner] * x.values[base + c * inner];
            }
            double const root = std::sqrt(squares);
            double const norm
                = mode == 0 ? root + 0.5 : (mode == 1 ? std::sqrt(squares + 0.5) : std::fmax(root, 0.5));
            for (int64_t c = 0; c < channels; ++c)
            {
                wanted[base + c * inner] = x.values[base + c * inner] / norm * scale.values[c];
            }
        }
    }
    tally.add("l2norm " + text({outer, channels, inner, mode, skip, static_cast<int64_t>(route), lanes, threads, cluster}),
        type, y.error(wanted));
}

// Windows of granules: every cut, rows that begin anywhere in a granule.
inline void checkL2Windows(Tally& tally, ElementType type, bool quick)
{
    int64_t const shapes[][3] = {{8, 5, 1}, {2, 40, 7}, {8, 3, 29}, {2, 256, 75}, {1, 512, 361}, {3, 128, 122},
        {8, 33, 1000}, {2, 264, 1024}, {8, 21, 4100}, {1, 1000, 200}, {9, 64, 57}, {1, 2048, 49}, {2, 4096, 24}};
    for (int32_t cut = 0; cut < 8; ++cut)
    {
        for (auto const& [outer, channels, inner] : shapes)
        {
            if (!quick || outer * channels * inner < 200000)
            {
                checkL2(tally, type, outer, channels, inner, cut % 3, 0, l2norm::Route::kWindows, cut % 2 == 0 ? 8 : 16, 0,
                    1 << cut / 2);
            }
        }
    }
}

// Rows of whole granules, a warp or several to each.
inline void checkL2Rows(Tally& tally, ElementType type, bool quick)
{
    auto const route = l2norm::Route::kPackedRows;
    for (int64_t const channels : {8, 16, 100, 256, 264, 512, 520, 768, 1000, 1024, 1536, 2048, 2056, 4096, 9000})
    {
        int32_t const cuts[][2] = {{0, 0}, {32, 256}, {64, 0}, {64, 256}, {96, 192}, {192, 384}, {256, 512}};
        for (auto const& [lanes, threads] : cuts)
        {
            checkL2(tally, type, quick ? 61 : 201, channels, 1, 0, 0, route, lanes, threads);
            checkL2(tally, type, 5, channels, 1, 1, 0, route, lanes, threads);
            checkL2(tally, type, 7, channels, 1, 2, 0, route, lanes, threads);
        }
    }
}

inline void checkL2Shapes(Tally& tally, ElementType type, bool quick)
{
    for (int32_t mode = 0; mode < 3; ++mode)
    {
        checkL2(tally, type, 2, 512, 361, mode, 0);
        checkL2(tally, type, 1, 256, 1444, mode, 0);
        checkL2(tally, type, 5, 128, 1, mode, 0);
    }
    int64_t const shapes[][3] = {{1, 1, 1}, {1, 3, 7}, {2, 512, 64}, {3, 17, 33}, {1, 1024, 30}, {1, 2048, 20},
        {1, 4096, 8}, {1, 5000, 6}, {2, 700, 2}, {2, 64, 3}, {3, 1000, 1}, {2, 3000, 1}, {1, 9000, 1}, {0, 4, 4},
        {2, 0, 4}, {2, 4, 0}, {1, 512, 4096}, {40, 24, 1000}};
    for (auto const& s : shapes)
    {
        if (!quick || s[0] * s[1] * s[2] < 100000)
        {
            checkL2(tally, type, s[0], s[1], s[2], 0, 0);
            checkL2(tally, type, s[0], s[1], s[2], 2, 1);
        }
    }
    // What the library chooses, and what it falls back to.
    int64_t const more[][3] = {{3, 8, 45000}, {2, 200, 9001}, {2, 500, 2002}, {40, 64, 10000}, {2, 2048, 49}, {1, 5000, 40},
        {3, 7, 333}, {5, 40, 12}, {200, 768, 1}, {200, 767, 1}, {30, 9000, 1}, {2, 70000, 1}};
    for (auto const& s : more)
    {
        if (!quick || s[0] * s[1] * s[2] < 200000)
        {
            checkL2(tally, type, s[0], s[1], s[2], 0, 0);
            checkL2(tally, type, s[0], s[1], s[2], 1, 0);
            checkL2(tally, type, s[0], s[1], s[2], 2, 0, l2norm::Route::kColumns);
            checkL2(tally, type, s[0], s[1], s[2], 0, 0, l2norm::Route::kRows);
        }
    }
    checkL2Windows(tally, type, quick);
    checkL2Rows(tally, type, quick);
}
} // namespace trtconv::checks
