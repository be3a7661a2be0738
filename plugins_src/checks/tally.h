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
        worst[static_cast<int32_t>(type)] = std::fmax(worst[static_cast<int32_t>(type)], error);
        judge(name, type, error, tolerance(type));
    }

    // Of float32 by products of TF32, which has the mantissa of float16.
    void addTf32(std::string const& name, double error)
    {
        judge(name + "tf32", ElementType::kFloat32, error, tolerance(ElementType::kFloat16));
    }

private:
    void judge(std::string const& name, ElementType type, double error, double most)
    {
        ++cases;
        if (!(error <= most))
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
