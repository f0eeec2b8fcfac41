// Tensors come from files (given_tensors) and go into .npy files, one per output; without --output
// a line per output says what is in it.
#include "cli/commands/run_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>

#include "base/file.hpp"
#include "base/half.hpp"
#include "cli/commands/given_tensors.hpp"
#include "cli/commands/run_profile.hpp"
#include "cli/json.hpp"
#include "cli/memory_text.hpp"
#include "cli/output_file.hpp"
#include "cli/usage.hpp"
#include "tensor/npy.hpp"

namespace cyb::cli {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// "<output name>.npy" with `/` as `_`. Error: Usage where two outputs would be one file.
Result<std::vector<std::string>> file_names(const std::vector<std::string>& outputs,
                                            std::span<const std::size_t> chosen,
                                            const std::string& folder) {
  std::map<std::string, std::string> taken;
  std::vector<std::string> paths;
  for (const std::size_t i : chosen) {
    std::string name = outputs[i] + ".npy";
    std::ranges::replace(name, '/', '_');
    const auto [at, added] = taken.emplace(name, outputs[i]);
    if (!added) {
      return fail(usage_error(
          fmt::format("--output: the outputs \"{}\" and \"{}\" would both be {}: choose one with "
                      "--select",
                      at->second, outputs[i], name)));
    }
    paths.push_back(folder + "/" + name);
  }
  return paths;
}

/// Not there under its name until commit().
Result<AtomicFile> written_output(const std::string& path, const TensorView& tensor) {
  CYB_ASSIGN(AtomicFile file, AtomicFile::create(path));
  CYB_ASSIGN(const std::string header, npy_header(tensor.dtype, tensor.shape));
  CYB_TRY(file.write(header));
  const std::uint64_t size = tensor_bytes(tensor.dtype, tensor.shape).value_or(0);
  CYB_TRY(file.write(std::span(tensor.data, static_cast<std::size_t>(size))));
  CYB_TRY(file.write_at(file.size(), {}));  // nothing stays in the buffer: a full disk shows here
  return file;
}

/// All of them or none: a full disk is found before the first has its name.
Result<void> write_outputs(TensorSession& session, std::span<const std::size_t> chosen,
                           std::span<const std::string> paths) {
  std::vector<AtomicFile> files;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    CYB_ASSIGN(const TensorView tensor, session.output(chosen[i]));
    CYB_ASSIGN(AtomicFile file, written_output(paths[i], tensor));
    files.push_back(std::move(file));
  }
  for (AtomicFile& file : files) CYB_TRY(file.commit());
  return {};
}

/// Files that --input names.
std::vector<std::string> files_read(std::span<const std::string> inputs) {
  std::vector<std::string> out;
  for (const std::string& input : inputs) {
    if (const auto named = split_named(input)) out.emplace_back(named->second);
  }
  return out;
}

struct Summary {
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double sum = 0;
  std::size_t n = 0, n_not_finite = 0;
};

template <class T>
void add_all(Summary& summary, const TensorView& tensor) {
  for (std::int64_t i = 0; i < tensor.shape.count(); ++i) {
    const auto value = static_cast<double>(tensor.as<T>()[i]);
    if (!std::isfinite(value)) {
      ++summary.n_not_finite;
      continue;
    }
    summary.min = std::min(summary.min, value);
    summary.max = std::max(summary.max, value);
    summary.sum += value;
    ++summary.n;
  }
}

Summary summarise(const TensorView& tensor) {
  Summary out;
  switch (tensor.dtype) {
    case DType::kF32:
      add_all<float>(out, tensor);
      break;
    case DType::kF64:
      add_all<double>(out, tensor);
      break;
    case DType::kF16:
      for (std::int64_t i = 0; i < tensor.shape.count(); ++i) {
        const float value = f16_to_f32(tensor.as<std::uint16_t>()[i]);
        add_all<float>(out, {DType::kF32, Shape{}, reinterpret_cast<const std::byte*>(&value)});
      }
      break;
    case DType::kI8:
      add_all<std::int8_t>(out, tensor);
      break;
    case DType::kI16:
      add_all<std::int16_t>(out, tensor);
      break;
    case DType::kI32:
      add_all<std::int32_t>(out, tensor);
      break;
    case DType::kI64:
      add_all<std::int64_t>(out, tensor);
      break;
    case DType::kUint16:
      add_all<std::uint16_t>(out, tensor);
      break;
    case DType::kUint32:
      add_all<std::uint32_t>(out, tensor);
      break;
    case DType::kUint64:
      add_all<std::uint64_t>(out, tensor);
      break;
    default:
      add_all<std::uint8_t>(out, tensor);  // u8, bool
  }
  return out;
}

std::string summary_text(const std::string& name, const TensorView& tensor, const Summary& s) {
  std::string text = fmt::format("{} {} {}", name, dtype_name(tensor.dtype), tensor.shape.text());
  if (s.n != 0) {
    text += fmt::format("  min {:.6g}  max {:.6g}  mean {:.6g}", s.min, s.max,
                        s.sum / static_cast<double>(s.n));
  }
  if (s.n_not_finite != 0) text += fmt::format("  {} not finite", s.n_not_finite);
  return text;
}

Json shape_json(const Shape& shape) {
  Json out = Json::array();
  for (const std::int64_t d : shape.dims()) out.push_back(d);
  return out;
}

/// A row of JSON per chosen output; without `json` a line each: a summary, or its file (`paths`,
/// may be empty). Values that are not finite are warned of.
Result<Json> reported(Context& context, TensorSession& session, std::span<const std::size_t> chosen,
                      std::span<const std::string> paths, bool json) {
  Json outputs = Json::array();
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    CYB_ASSIGN(const TensorView tensor, session.output(chosen[i]));
    const std::string& name = session.outputs()[chosen[i]];
    const Summary summary = summarise(tensor);
    if (summary.n_not_finite != 0) {
      context.output.warning(
          fmt::format("output \"{}\": {} values are not finite", name, summary.n_not_finite));
    }
    if (!json && paths.empty()) context.output.line(summary_text(name, tensor, summary));
    if (!json && !paths.empty()) {
      context.output.note(
          fmt::format("{}: {} {}", paths[i], dtype_name(tensor.dtype), tensor.shape.text()));
    }
    Json row = {
        {"name", name}, {"dtype", dtype_name(tensor.dtype)}, {"shape", shape_json(tensor.shape)}};
    if (!paths.empty()) row["file"] = json_text(paths[i]);
    outputs.push_back(std::move(row));
  }
  return outputs;
}

}  // namespace

void TensorFlags::declare(Options& options) {
  options.texts(
      "--input", inputs_, "NAME=FILE",
      "For a model of tensors: input NAME from a .npy, .png, .jpg or .wav file; each once");
  media_.declare(options);
  options.optional_text("--output", output_, "DIR",
                        "For a model of tensors: write DIR/<output>.npy (`/` in a name as `_`)");
  options.texts("--select", select_, "NAME",
                "For a model of tensors: this output alone; may be given again");
  options.flag("--force", force_, "With --output or --trace: overwrite files that exist");
  options.flag("--profile", profile_, "For a model of tensors: time of each step, on stderr");
  options.optional_text("--trace", trace_, "FILE",
                        "For a model of tensors: times of the steps as a Chrome trace (JSON)");
}

std::string TensorFlags::given() const {
  const std::pair<const char*, bool> all[] = {
      {"--input", !inputs_.empty()},   {"--output", output_.has_value()},
      {"--select", !select_.empty()},  {"--profile", profile_},
      {"--trace", trace_.has_value()}, {"--force", force_}};
  const auto found = std::ranges::find(all, true, &std::pair<const char*, bool>::second);
  return found != std::end(all)         ? found->first
         : !media_.image_flag().empty() ? media_.image_flag()
                                        : media_.sound_flag();
}

/// Indices of the outputs that --select names, in the model's order; all of them without it.
Result<std::vector<std::size_t>> TensorFlags::chosen(std::span<const std::string> outputs) const {
  for (const std::string& name : select_) {
    if (std::ranges::find(outputs, name) == outputs.end()) {
      return fail(usage_error(
          fmt::format("--select {}: the model's outputs are: {}", name, fmt::join(outputs, ", "))));
    }
  }
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (select_.empty() || std::ranges::find(select_, outputs[i]) != select_.end())
      out.push_back(i);
  }
  return out;
}

/// No result takes the place of the model, of an input or of another result.
Result<void> TensorFlags::check_files(const ModelFlags& flags,
                                      std::span<const std::string> paths) const {
  std::vector<std::string> outputs(paths.begin(), paths.end());
  if (trace_) outputs.push_back(*trace_);
  std::vector<std::string> read = files_read(inputs_);
  read.push_back(flags.name());
  return check_apart(outputs, read);
}

Result<int> TensorFlags::run(Context& context, const ModelFlags& flags,
                             std::shared_ptr<const Model> model, bool json) const {
  if (force_ && !output_ && !trace_)
    return fail(usage_error("--force has no effect without --output DIR or --trace FILE"));
  if (trace_) CYB_TRY(check_output_file(*trace_, force_));
  CYB_ASSIGN(const Digest id, model->model_id());
  const Clock::time_point start = Clock::now();
  const EngineOptions options = flags.engine_options();
  CYB_ASSIGN(const std::unique_ptr<TensorSession> session,
             TensorSession::open(std::move(model), options));
  session->measure(profile_ || trace_.has_value());
  CYB_ASSIGN(const std::vector<std::size_t> shown, chosen(session->outputs()));
  std::vector<std::string> paths;
  if (output_) {
    CYB_ASSIGN(paths, file_names(session->outputs(), shown, *output_));
    for (const std::string& path : paths) CYB_TRY(check_output_file(path, force_));
  }
  CYB_TRY(check_files(flags, paths));
  CYB_ASSIGN(const GivenTensors given, read_tensors(inputs_, media_, *session, context.output));
  const double load_ms = ms_since(start);
  const Clock::time_point run_start = Clock::now();
  CYB_TRY(session->run(given.tensors, context.interrupts.begin()));
  const double run_ms = ms_since(run_start);
  if (session->steps_cut())
    context.output.warning("the run had more steps than --profile and --trace keep");
  if (profile_) context.output.err(profile_text(session->steps(), session->backend().name()));
  if (trace_) CYB_TRY(write_trace(*trace_, session->steps(), session->backend().name()));
  if (output_) CYB_TRY(make_folders(*output_));
  if (output_) CYB_TRY(write_outputs(*session, shown, paths));
  CYB_ASSIGN(const Json outputs, reported(context, *session, shown, paths, json));
  if (!json) return kExitOk;
  context.output.line(Json{{"outputs", outputs},
                           {"path", "graph"},
                           {"backend", std::string(session->backend().name())},
                           {"model_id", digest_text(id)},
                           {"fallback_steps", session->n_fallback_steps()},
                           {"memory", memory_json(session->memory())},
                           {"timings", {{"load_ms", load_ms}, {"run_ms", run_ms}}}}
                          .dump());
  return kExitOk;
}

}  // namespace cyb::cli
