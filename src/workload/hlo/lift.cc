#include "workload/hlo/lift.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hemiola::workload::hlo {
namespace {

/// At most so many, and how many more there are.
std::string product_names(const std::vector<ProductOfModule>& products) {
  constexpr std::size_t kMostNamed = 12;
  std::vector<std::string_view> names;
  for (const ProductOfModule& one : products)
    if (names.size() < kMostNamed) names.push_back(one.product->name);
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (products.size() > names.size())
    text += fmt::format(" and {} more", products.size() - names.size());
  return text;
}

const ProductOfModule& find_named(const Module& module,
                                  const std::vector<ProductOfModule>& products,
                                  const std::string& given) {
  if (products.empty()) throw Failure("there is no matrix product in it", {.file = module.file});
  const std::string_view name =
      given.starts_with('%') ? std::string_view(given).substr(1) : std::string_view(given);
  std::vector<const ProductOfModule*> found;
  for (const ProductOfModule& one : products)
    if (one.product->name == name || one.kernel->name == name) found.push_back(&one);
  if (found.empty()) {
    std::vector<std::string> names;
    for (const ProductOfModule& one : products) names.emplace_back(one.product->name);
    const std::string nearest = suggest(name, names);
    throw Failure(fmt::format("there is no product '{}' in {}", name, module.file),
                  {.file = "--dot"},
                  (nearest.empty() ? "" : nearest + " ") + "there are " + product_names(products));
  }
  if (found.size() > 1) {
    std::vector<std::string> places;
    for (const ProductOfModule* one : found)
      places.push_back(
          fmt::format("'{}' at line {}", one->product->name, module.at(one->kernel->offset).line));
    throw Failure(
        fmt::format("'{}' stands for {} products: {}", name, found.size(), fmt::join(places, ", ")),
        {.file = "--dot"}, "name one of them");
  }
  return *found.front();
}

std::string family_of(const std::string& template_name) {
  return template_name.substr(0, template_name.find('/'));
}

const Lift& choose_lift(const Module& module, const ProductOfModule& product,
                        const std::string& template_name) {
  const Instruction& at = *product.product;
  if (product.lifts.empty() && product.shape.batch > 1)
    module.fail(at, fmt::format("'{}' is a product of {} pairs of matrices, and templates have one",
                                at.name, product.shape.batch));
  if (product.lifts.empty() && !product.others.empty()) {
    const NoLift& other = product.others.front();
    module.fail(
        *other.collective,
        fmt::format("{} '{}' and product '{}' are no operator of a template: {}",
                    other.collective->opcode, other.collective->name, at.name, other.reason));
  }
  if (product.lifts.empty())
    module.fail(at,
                fmt::format("no collective feeds product '{}' or follows it, with nothing "
                            "computed between",
                            at.name),
                "--describe lists products and their collectives");
  std::vector<const Lift*> fitting;
  std::vector<std::string> all;
  for (const Lift& lift : product.lifts) {
    if (template_name.empty() || lift.family == family_of(template_name)) fitting.push_back(&lift);
    all.push_back(fmt::format("{} with '{}'", lift.family, lift.collective->name));
  }
  if (fitting.empty())
    throw Failure(fmt::format("product '{}' is {}, not {}", at.name, fmt::join(all, " or "),
                              family_of(template_name)),
                  {.file = "--template"});
  if (fitting.size() > 1)
    module.fail(
        at, fmt::format("product '{}' is {}", at.name, fmt::join(all, " and ")),
        "--template says which, for example " + product.lifts.front().family + "/" + "serial");
  return *fitting.front();
}

/// As templates call it.
std::string word_of(DataType type) {
  switch (type) {
    case DataType::float16:
      return "float16";
    case DataType::bfloat16:
      return "bfloat16";
    case DataType::float32:
      return "float32";
    default:
      return std::string(name_of(type));
  }
}

/// The template of a family that does one after the other, as the module does; or its first.
std::string usual_template(const std::string& family) {
  if (plan::find_template(family + "/serial") != nullptr) return family + "/serial";
  for (const plan::TemplateInfo& one : plan::templates())
    if (family_of(one.name) == family) return one.name;
  return family;
}

}  // namespace

LiftedPlan lift_product(const Module& module, const LiftRequest& request) {
  const std::vector<ProductOfModule> products = find_products(module);
  const ProductOfModule& product = find_named(module, products, request.product);
  const Lift& lift = choose_lift(module, product, request.template_name);
  const std::string name =
      request.template_name.empty() ? usual_template(lift.family) : request.template_name;
  plan::Parameters parameters{{"m", std::to_string(lift.m)},
                              {"n", std::to_string(lift.n)},
                              {"k", std::to_string(lift.k)},
                              {"dtype", word_of(lift.type)}};
  for (const auto& [key, value] : request.parameters) {
    if (key == "m" || key == "n" || key == "k" || key == "dtype")
      throw Failure(fmt::format("'{}' is what the module says", key), {.file = "--param"});
    parameters.emplace_back(key, value);
  }
  try {
    return {plan::make(name, lift.ranks, parameters), name, lift};
  } catch (const Failure& failure) {
    // The plan's reason, at the product.
    const Diagnostic& first = failure.diagnostics().items().front();
    const bool is_of_option = first.where.file == "--param" || first.where.file == "--template";
    throw Failure(
        fmt::format("product '{}' cannot be {}: {}", product.product->name, name, first.message),
        is_of_option ? first.where : module.at(product.product->offset), first.hint);
  }
}

}  // namespace hemiola::workload::hlo
