// The callback of a client that is gone runs under the exchange's lock, those of the shelf under
// none: the wait's own lock is never held while the exchange is called, but for the comments, which
// the end of the wait must not overtake.
#include "server/model_wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <mutex>
#include <utility>

namespace cyb::server {
namespace {

constexpr double kLongestSeconds = 1e9;  // and longer is for ever
constexpr KeepAlive kForever{-1};

class ModelWait : public std::enable_shared_from_this<ModelWait> {
 public:
  ModelWait(Service& service, std::shared_ptr<Call> call, std::function<void()> ready)
      : service_(service), call_(std::move(call)), ready_(std::move(ready)) {}

  void load(std::size_t model, std::optional<KeepAlive> keep) {
    const auto self = shared_from_this();
    ModelShelf::LeaseEvents events;
    events.done = [self](Result<ModelLease> got) {
      if (!got) return self->over(fail(std::move(got).error()));
      self->call_->model = *std::move(got);  // no copy here may outlive the answer
      self->over({});
    };
    if (call_->stream_error) {
      events.waiting = [self](std::string_view name, std::uint32_t percent) {
        self->comment(fmt::format(": loading {} {} %\n\n", name, percent));
      };
    }
    call_->exchange->on_gone([self] { self->gone(); });
    known(service_.shelf().acquire(model, keep, std::move(events)));
  }

  void unload(std::size_t model) {
    const auto self = shared_from_this();
    call_->exchange->on_gone([self] { self->gone(); });
    known(
        service_.shelf().unload(model, [self](Result<void> done) { self->over(std::move(done)); }));
  }

 private:
  void known(ModelShelf::WaitId id) {
    const std::lock_guard lock(mutex_);
    id_ = id;
    if (gone_ && !over_) service_.shelf().cancel(id_);
  }

  void gone() {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    if (id_ != 0 && !over_) service_.shelf().cancel(id_);
  }

  void comment(std::string text) {
    const std::lock_guard lock(mutex_);
    if (!over_) begin_stream(*call_, "text/event-stream", std::move(text));
  }

  void over(Result<void> result) {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    call_->exchange->on_gone({});
    if (!result) return service_.respond(*call_, shelf_error(result.error()));
    const auto go_on = [self = shared_from_this()] { self->ready_(); };
    if (service_.workers().post(go_on)) return;
    service_.respond(
        *call_, ApiError{503, "The server has too much to do; try again later.", "overloaded"});
  }

  Service& service_;
  std::shared_ptr<Call> call_;
  std::function<void()> ready_;
  std::mutex mutex_;  // guards what follows
  ModelShelf::WaitId id_ = 0;
  bool gone_ = false, over_ = false;
};

/// A number with its unit off the front of `text`, in seconds.
std::optional<double> take_duration(std::string_view& text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (code != std::errc() || text.front() == '-' || !std::isfinite(number)) return std::nullopt;
  text = std::string_view(rest, static_cast<std::size_t>(end - rest));
  if (text.empty()) return number;
  const auto unit =
      std::ranges::find_if(kUnits, [&](const auto& one) { return text.starts_with(one.first); });
  if (unit == std::end(kUnits)) return std::nullopt;
  text.remove_prefix(unit->first.size());
  return number * unit->second;
}

KeepAlive keep_of(double seconds) {
  if (seconds < 0 || seconds > kLongestSeconds) return kForever;
  return KeepAlive(static_cast<std::int64_t>(std::ceil(seconds * 1e3)));
}

}  // namespace

ApiResult<std::size_t> find_model(Service& service, std::string_view name) {
  if (const auto found = service.shelf().find(name)) return *found;
  std::string names;
  constexpr std::size_t kMost = 8;
  const auto views = service.shelf().views();
  for (std::size_t i = 0; i < std::min(views.size(), kMost); ++i) {
    names += fmt::format("{}'{}'", i == 0 ? "" : ", ", views[i].name);
  }
  if (views.size() > kMost) names += ", ...";
  return refuse({404, fmt::format("There is no such model here; this server has {}.", names),
                 "model_not_found", "model"});
}

ApiError shelf_error(const Error& error) {
  if (error.code() == "model_too_large") {
    return {507,
            "The model does not fit into the memory that models may take: " + error.message() + ".",
            "model_too_large", "model"};
  }
  if (error.code() == "model_pinned") {
    return {409, "The model is pinned: it is not unloaded.", "model_pinned", "model"};
  }
  switch (error.kind()) {
    case ErrorKind::kBusy:
    case ErrorKind::kOutOfMemory:  // of the budget or of the machine
      return api_error(error);
    case ErrorKind::kCancelled:
      return {499, "The request was cancelled.", "cancelled"};
    default:
      return {500, "The model could not be loaded.", "model_load_failed", "model"};
  }
}

std::optional<KeepAlive> parse_keep_alive(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > 64) return std::nullopt;
  double seconds = 0;
  while (!text.empty()) {
    const auto part = take_duration(text);
    if (!part) return std::nullopt;
    seconds += *part;
  }
  return negative && seconds > 0 ? kForever : keep_of(seconds);
}

ApiResult<std::optional<KeepAlive>> read_keep_alive(const Fields& fields) {
  using Kind = ChatValue::Kind;
  const ChatValue* value = fields.find("keep_alive");
  if (value == nullptr) return std::optional<KeepAlive>();
  if (value->kind == Kind::kInt || value->kind == Kind::kFloat) {
    return std::optional(keep_of(*fields.number("keep_alive")));
  }
  const auto parsed = value->kind == Kind::kString ? parse_keep_alive(value->text) : std::nullopt;
  if (!parsed) {
    return refuse(bad_value("keep_alive", "must be seconds or a time as \"5m\"; -1: for ever"));
  }
  return parsed;
}

void with_model(Service& service, const std::shared_ptr<Call>& call, std::size_t model,
                std::optional<KeepAlive> keep, std::function<void()> ready) {
  call->model_name = service.shelf().name(model);
  if (auto loaded = service.shelf().try_acquire(model, keep)) {
    call->model = *std::move(loaded);
    return ready();
  }
  std::make_shared<ModelWait>(service, call, std::move(ready))->load(model, keep);
}

void with_model(Service& service, const std::shared_ptr<Call>& call, std::string_view name,
                std::optional<KeepAlive> keep, std::function<void()> ready) {
  const auto model = find_model(service, name);
  if (!model) return service.respond(*call, model.error());
  with_model(service, call, *model, keep, std::move(ready));
}

void without_model(Service& service, const std::shared_ptr<Call>& call, std::size_t model,
                   std::function<void()> done) {
  std::make_shared<ModelWait>(service, call, std::move(done))->unload(model);
}

void begin_stream(Call& call, std::string_view type, std::string text) {
  if (std::exchange(call.stream_begun, true)) {
    if (!text.empty()) call.exchange->write(text);
    return;
  }
  call.exchange->begin({200,
                        std::string(type),
                        std::move(text),
                        {{"Cache-Control", "no-store"}, {"X-Request-Id", call.id}}});
}

}  // namespace cyb::server
