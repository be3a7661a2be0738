// What the checks have found so far.
#pragma once

#include "checks/buffers.h"

#include <initializer_list>
#include <string>

namespace trtconv::checks
{
struct Tally
{
    int32_t cases{0};
    int32_t wrong{0};
    double worst[kElementTypes]{};

    void add(std::string const& name, ElementType type, double error)
    {
        ++cases;
        worst[static_cast<int32_t>(type)] = std::fmax(worst[static_cast<int32_t>(type)], error);
        if (!(error <= tolerance(type)))
        {
            ++wrong;
            std::printf("WRONG %s %s: %.3g\n", nameOf(type), name.c_str(), error);
        }
    }
};

inline std::string text(std::initializer_list<int64_t> numbers)
{
    std::string result;
    for (int64_t const n : numbers)
    {
        result += std::to_string(n) + " ";
    }
    return result;
}
} // namespace trtconv::checks
