// An op's attributes as the adapters carry them: a struct that the generated field table describes.
#pragma once

#include "adapters/op.h"

#include <array>
#include <string>
#include <vector>

namespace trtconv
{
class AttributeBlock
{
public:
    explicit AttributeBlock(Op const& op) noexcept;

    // Takes the values of `fields`; unknown names are passed over (importers add some of their own). Returns what is
    // wrong, empty when nothing is.
    std::string take(nvinfer1::PluginFieldCollection const& fields);

    // Fields that point at the values here.
    std::vector<nvinfer1::PluginField> fields() const;

    // The values one after the other behind a format number; of the same length for every value.
    size_t serializedSize() const noexcept;
    void serialize(void* to) const noexcept;
    // False when `from` was not written by `serialize` for this op.
    bool deserialize(void const* from, size_t size) noexcept;

    void const* data() const noexcept
    {
        return mBytes.data();
    }

private:
    std::string takeField(AttributeField const& field, nvinfer1::PluginField const& given);
    std::string check(AttributeField const& field) const;

    Signature const* mSignature;
    alignas(8) std::array<unsigned char, 64> mBytes{};
};

// The fields that a creator says it has: names, types and lengths without values.
std::vector<nvinfer1::PluginField> declaredFields(Signature const& signature);
} // namespace trtconv
