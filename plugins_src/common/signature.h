// What the generated header says about a plugin: its names, its attributes and its tensors' types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace trtconv
{
inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

enum class AttributeKind : int32_t
{
    kInt,
    kFloat,
    kInts,
};

struct AttributeField
{
    char const* name;
    AttributeKind kind;
    int32_t length;
    size_t offset;
    double low;
    double high;
};

// slots[i] is the type variable of tensor i, inputs first; typeMasks[v] has bit ElementType for each allowed type.
struct Signature
{
    char const* name;
    char const* version;
    char const* nameSpace;
    AttributeField const* fields;
    int32_t fieldCount;
    size_t attributesSize;
    int32_t inputs;
    int32_t outputs;
    int32_t const* slots;
    uint32_t const* typeMasks;
};
} // namespace trtconv
