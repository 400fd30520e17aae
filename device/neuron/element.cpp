#include "device/neuron/element.h"

#include <utility>

namespace trellis::device {
namespace {

using kernels::DType;
using nrt::Element;

constexpr std::pair<Element, DType> types[] = {
    {Element::u64, DType::u64},     {Element::i8, DType::i8},       {Element::u8, DType::u8},
    {Element::i16, DType::i16},     {Element::u16, DType::u16},     {Element::bf16, DType::bf16},
    {Element::f16, DType::f16},     {Element::i32, DType::i32},     {Element::u32, DType::u32},
    {Element::f32, DType::f32},     {Element::f32r, DType::tf32},   {Element::i64, DType::i64},
    {Element::f8e3, DType::f8e3m4}, {Element::f8e4, DType::f8e4m3}, {Element::f8e5, DType::f8e5m2}};

}  // namespace

std::optional<Element> element_of(DType t) {
  for (const auto& [element, type] : types)
    if (type == t) return element;
  return std::nullopt;
}

DType type_of(Element e) {
  for (const auto& [element, type] : types)
    if (element == e) return type;
  return DType::u8;
}

}  // namespace trellis::device
