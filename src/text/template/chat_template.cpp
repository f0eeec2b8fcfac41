// The public face of the template engine: inputs become values, output becomes segments, failures
// become errors.
#include "text/template/chat_template.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/utf8.hpp"
#include "text/template/interpreter.hpp"
#include "text/template/parser.hpp"

namespace cyb {
namespace {

Error template_error(const tmpl::Failure& failure) {
  return Error(ErrorKind::kTemplate,
               fmt::format("template: line {}, column {}: {}", failure.at.line, failure.at.column,
                           failure.message));
}

/// Inputs as values; strings are viewed, not copied, so the input must outlive the context.
class Importer {
 public:
  explicit Importer(tmpl::Context& context) : context_(context) {}

  tmpl::Value value(const ChatValue& in, unsigned depth = 0) {
    if (depth > kMaxJsonDepth) context_.fail("the input is nested too deeply");
    switch (in.kind) {
      case ChatValue::Kind::kNull:
        return tmpl::none();
      case ChatValue::Kind::kBool:
        return tmpl::of(in.boolean);
      case ChatValue::Kind::kInt:
        return tmpl::of(in.integer);
      case ChatValue::Kind::kFloat:
        return tmpl::of(in.number);
      case ChatValue::Kind::kString:
        return text(in.text, false);
      case ChatValue::Kind::kList:
        return list(in.items, depth);
      case ChatValue::Kind::kObject:
        break;
    }
    tmpl::Dict* dict = context_.make(tmpl::Dict{});
    for (const auto& [key, member] : in.members)
      dict->set(context_, text(key, false), value(member, depth + 1));
    return tmpl::of(dict);
  }

  tmpl::Value list(const std::vector<ChatValue>& in, unsigned depth) {
    tmpl::Value* items = context_.array<tmpl::Value>(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) items[i] = value(in[i], depth + 1);
    return tmpl::list_of(context_, {items, in.size()});
  }

  tmpl::Value text(const std::string& in, bool control) {
    if (in.size() > kMaxTemplateOutput) {
      context_.fail(
          fmt::format("a text of the input has {} bytes; a rendered prompt has at most {}",
                      in.size(), kMaxTemplateOutput));
    }
    if (utf8_find_invalid(in) != std::string_view::npos)
      context_.fail("a text of the input is not UTF-8");
    return tmpl::text_view(context_, in, control);
  }

 private:
  tmpl::Context& context_;
};

tmpl::Value function(tmpl::Function which) {
  tmpl::Value out;
  out.kind = tmpl::Kind::kFunction;
  out.function = which;
  return out;
}

void define_all(tmpl::Interpreter& interpreter, Importer& importer, const ChatInput& input) {
  constexpr std::pair<std::string_view, tmpl::Function> kFunctions[] = {
      {"range", tmpl::Function::kRange},           {"dict", tmpl::Function::kDict},
      {"namespace", tmpl::Function::kNamespace},   {"raise_exception", tmpl::Function::kRaise},
      {"strftime_now", tmpl::Function::kStrftime}, {"joiner", tmpl::Function::kJoiner},
      {"cycler", tmpl::Function::kCycler},         {"lipsum", tmpl::Function::kLipsum}};
  for (const auto& [name, which] : kFunctions) interpreter.define(name, function(which));
  interpreter.define("messages", importer.list(input.messages, 0));
  interpreter.define("tools", importer.value(input.tools));
  interpreter.define("documents", importer.value(input.documents));
  interpreter.define("add_generation_prompt", tmpl::of(input.add_generation_prompt));
  // transformers passes only the special tokens that a tokenizer has: an empty one is not defined.
  if (!input.bos_token.empty())
    interpreter.define("bos_token", importer.text(input.bos_token, true));
  if (!input.eos_token.empty())
    interpreter.define("eos_token", importer.text(input.eos_token, true));
  for (const auto& [name, value] : input.variables) interpreter.define(name, importer.value(value));
}

}  // namespace

ChatValue::ChatValue(const ChatValue& other) = default;
ChatValue::ChatValue(ChatValue&& other) noexcept = default;
ChatValue& ChatValue::operator=(const ChatValue& other) = default;
ChatValue& ChatValue::operator=(ChatValue&& other) noexcept = default;
ChatValue::~ChatValue() = default;

ChatValue ChatValue::of(bool value) {
  ChatValue out;
  out.kind = Kind::kBool;
  out.boolean = value;
  return out;
}

ChatValue ChatValue::of(std::int64_t value) {
  ChatValue out;
  out.kind = Kind::kInt;
  out.integer = value;
  return out;
}

ChatValue ChatValue::of(double value) {
  ChatValue out;
  out.kind = Kind::kFloat;
  out.number = value;
  return out;
}

ChatValue ChatValue::of(std::string_view value) {
  ChatValue out;
  out.kind = Kind::kString;
  out.text = value;
  return out;
}

ChatValue ChatValue::list(std::vector<ChatValue> items) {
  ChatValue out;
  out.kind = Kind::kList;
  out.items = std::move(items);
  return out;
}

ChatValue ChatValue::object(std::vector<std::pair<std::string, ChatValue>> members) {
  ChatValue out;
  out.kind = Kind::kObject;
  out.members = std::move(members);
  return out;
}

struct Template::Impl {
  std::unique_ptr<tmpl::Ast> ast;
};

Template::Template(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

const std::vector<std::string>& Template::literals() const noexcept {
  return impl_->ast->literals;
}

Result<Template> Template::compile(std::string_view source) {
  if (source.size() > kMaxStringBytes) {
    return fail(template_error({{1, 1}, fmt::format("more than {} bytes", kMaxStringBytes)}));
  }
  if (utf8_find_invalid(source) != std::string_view::npos) {
    return fail(template_error({{1, 1}, "the template is not UTF-8"}));
  }
  try {
    auto impl = std::make_unique<Impl>();
    impl->ast = tmpl::parse(source);
    return Template(std::move(impl));
  } catch (const tmpl::Failure& failure) {
    return fail(template_error(failure));
  } catch (const std::bad_alloc&) {
    return fail(Error(ErrorKind::kTemplate, "template: out of memory"));
  }
}

Result<std::vector<OwnedSegment>> Template::render(const ChatInput& input) const {
  try {
    tmpl::Context context;
    Importer importer(context);
    tmpl::Interpreter interpreter(context, input.now);
    define_all(interpreter, importer, input);
    interpreter.run(*impl_->ast);
    std::vector<OwnedSegment> out;
    const std::string_view text = interpreter.out().text();
    std::size_t begin = 0;
    for (const tmpl::Run& run : interpreter.out().runs()) {
      out.push_back({std::string(text.substr(begin, run.end - begin)), run.control});
      begin = run.end;
    }
    return out;
  } catch (const tmpl::Failure& failure) {
    return fail(template_error(failure));
  } catch (const std::bad_alloc&) {
    return fail(Error(ErrorKind::kTemplate, "template: out of memory"));
  }
}

std::string joined_text(const std::vector<OwnedSegment>& segments) {
  std::string out;
  for (const OwnedSegment& segment : segments) out += segment.text;
  return out;
}

}  // namespace cyb
