#include "adapters/attributes.h"

#include <algorithm>
#include <cstring>

namespace trtconv
{
namespace
{
constexpr uint32_t kFormat = 0x74630001; // "tc", version 1

nvinfer1::PluginFieldType typeOf(AttributeField const& field)
{
    return field.kind == AttributeKind::kFloat ? nvinfer1::PluginFieldType::kFLOAT32 : nvinfer1::PluginFieldType::kINT32;
}

size_t sizeOf(AttributeField const& field)
{
    return static_cast<size_t>(field.length) * 4;
}
} // namespace

AttributeBlock::AttributeBlock(Op const& op) noexcept
    : mSignature(op.signature)
{
    std::memcpy(mBytes.data(), op.defaults, std::min(mBytes.size(), op.signature->attributesSize));
}

std::string AttributeBlock::take(nvinfer1::PluginFieldCollection const& fields)
{
    for (int32_t i = 0; i < fields.nbFields; ++i)
    {
        nvinfer1::PluginField const& given = fields.fields[i];
        for (int32_t f = 0; f < mSignature->fieldCount; ++f)
        {
            AttributeField const& field = mSignature->fields[f];
            if (given.name != nullptr && std::strcmp(given.name, field.name) == 0)
            {
                std::string wrong = takeField(field, given);
                if (!wrong.empty())
                {
                    return std::string(mSignature->name) + ": " + field.name + " " + wrong;
                }
            }
        }
    }
    return {};
}

std::string AttributeBlock::takeField(AttributeField const& field, nvinfer1::PluginField const& given)
{
    if (given.data == nullptr || given.length != field.length)
    {
        return "has " + std::to_string(given.length) + " values, wanted " + std::to_string(field.length);
    }
    if (given.type != typeOf(field))
    {
        return "has field type " + std::to_string(static_cast<int32_t>(given.type));
    }
    std::memcpy(mBytes.data() + field.offset, given.data, sizeOf(field));
    return check(field);
}

std::string AttributeBlock::check(AttributeField const& field) const
{
    for (int32_t i = 0; i < field.length; ++i)
    {
        double value = 0.0;
        unsigned char const* const at = mBytes.data() + field.offset + static_cast<size_t>(i) * 4;
        if (field.kind == AttributeKind::kFloat)
        {
            float number = 0.0F;
            std::memcpy(&number, at, sizeof(number));
            value = number;
        }
        else
        {
            int32_t number = 0;
            std::memcpy(&number, at, sizeof(number));
            value = number;
        }
        if (!(value >= field.low && value <= field.high))
        {
            return "= " + std::to_string(value) + " is outside " + std::to_string(field.low) + " to "
                + std::to_string(field.high);
        }
    }
    return {};
}

std::vector<nvinfer1::PluginField> AttributeBlock::fields() const
{
    std::vector<nvinfer1::PluginField> result = declaredFields(*mSignature);
    for (int32_t f = 0; f < mSignature->fieldCount; ++f)
    {
        result[static_cast<size_t>(f)].data = mBytes.data() + mSignature->fields[f].offset;
    }
    return result;
}

size_t AttributeBlock::serializedSize() const noexcept
{
    size_t size = sizeof(kFormat);
    for (int32_t f = 0; f < mSignature->fieldCount; ++f)
    {
        size += sizeOf(mSignature->fields[f]);
    }
    return size;
}

void AttributeBlock::serialize(void* to) const noexcept
{
    auto* at = static_cast<unsigned char*>(to);
    std::memcpy(at, &kFormat, sizeof(kFormat));
    at += sizeof(kFormat);
    for (int32_t f = 0; f < mSignature->fieldCount; ++f)
    {
        AttributeField const& field = mSignature->fields[f];
        std::memcpy(at, mBytes.data() + field.offset, sizeOf(field));
        at += sizeOf(field);
    }
}

bool AttributeBlock::deserialize(void const* from, size_t size) noexcept
{
    uint32_t format = 0;
    if (from == nullptr || size != serializedSize())
    {
        return false;
    }
    std::memcpy(&format, from, sizeof(format));
    auto const* at = static_cast<unsigned char const*>(from) + sizeof(format);
    for (int32_t f = 0; f < mSignature->fieldCount; ++f)
    {
        AttributeField const& field = mSignature->fields[f];
        std::memcpy(mBytes.data() + field.offset, at, sizeOf(field));
        at += sizeOf(field);
        if (!check(field).empty())
        {
            return false;
        }
    }
    return format == kFormat;
}

std::vector<nvinfer1::PluginField> declaredFields(Signature const& signature)
{
    std::vector<nvinfer1::PluginField> result;
    for (int32_t f = 0; f < signature.fieldCount; ++f)
    {
        AttributeField const& field = signature.fields[f];
        result.emplace_back(field.name, nullptr, typeOf(field), field.length);
    }
    return result;
}
} // namespace trtconv
