// Saving and restoring: only full pages travel, so that no byte of a page is another owner's.
#include "runtime/session_file.hpp"

#include <utility>

#include "base/file.hpp"
#include "runtime/session_format.hpp"

namespace cyb {
namespace {

Error refused(const char* code, const std::string& path, const std::string& why) {
  return Error(ErrorKind::kFormat, code, path + ": " + why);
}

Error damaged(const std::string& path, std::string_view what) {
  return refused("K01", path, "no whole saved session: " + std::string(what));
}

Result<void> check_owner(const Engine& engine, const std::string& path, const SessionIndex& index,
                         std::string_view template_name) {
  if (index.model_id != engine.model_id()) {
    return fail(refused(
        "K02", path, "saved with the model " + index.model_id + ", this is " + engine.model_id()));
  }
  if (index.numerics != engine.numerics()) {
    return fail(refused("K03", path,
                        "saved with " + index.numerics + ", this is " + engine.numerics() +
                            ": other bits would follow"));
  }
  if (index.template_name != template_name) {
    return fail(refused("K04", path,
                        "saved with the chat template \"" + index.template_name + "\", this is \"" +
                            std::string(template_name) + "\""));
  }
  return {};
}

}  // namespace

Result<void> save_session(Session& session, const std::string& path, const SessionNotes& notes) {
  CYB_ASSIGN(Session::Use user, session.use());
  if (user.engine().length_rule().kind != LengthRule::Kind::kNone)
    return fail(not_built("saving a session of a model whose rope depends on the length"));
  const Sequence& sequence = std::as_const(user).sequence();
  KvPool& pool = sequence.pool();
  SessionIndex index{.model_id = user.engine().model_id(),
                     .numerics = user.engine().numerics(),
                     .template_name = notes.template_name,
                     .messages = notes.messages,
                     .page_bytes = pool.page_bytes(),
                     .n_pages = sequence.position() / pool.page_tokens()};
  const auto ids = sequence.tokens().first(std::size_t{index.n_pages} * pool.page_tokens());
  index.ids.assign(ids.begin(), ids.end());
  const std::vector<std::byte> whole = encode_session_index(index);

  CYB_ASSIGN(AtomicFile file, AtomicFile::create(path));
  const std::uint64_t index_bytes = whole.size();
  const Digest index_hash = blake3(whole), none{};
  CYB_TRY(file.write(kSessionMagic));
  CYB_TRY(file.write(std::as_bytes(std::span(&index_bytes, 1))));
  CYB_TRY(file.write(std::as_bytes(std::span(index_hash))));
  CYB_TRY(file.write(whole));
  const std::uint64_t hash_at = file.size();
  CYB_TRY(file.write(std::as_bytes(std::span(none))));
  Blake3 hasher;
  std::vector<std::byte> page(static_cast<std::size_t>(index.page_bytes));
  for (std::uint32_t i = 0; i < index.n_pages; ++i) {
    CYB_TRY(std::as_const(pool).store().read_page(sequence.pages()[i], page));
    hasher.update(page);
    CYB_TRY(file.write(page));
  }
  const Digest pages_hash = hasher.finish();
  CYB_TRY(file.write_at(hash_at, std::as_bytes(std::span(pages_hash))));
  return file.commit();
}

Result<RestoredSession> restore_session(Session& session, const std::string& path,
                                        std::string_view template_name) {
  CYB_ASSIGN(Session::Use user, session.use());
  const Engine& engine = user.engine();
  CYB_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  auto parsed = parse_session(file->bytes());
  if (!parsed) return fail(damaged(path, parsed.error().message()));
  const SessionIndex& index = parsed->index;
  CYB_TRY(check_owner(engine, path, index, template_name));
  CYB_TRY(engine.check_ids(index.ids));
  Sequence& sequence = user.sequence();
  KvPool& pool = sequence.pool();
  if (index.page_bytes != pool.page_bytes() ||
      index.ids.size() != std::uint64_t{index.n_pages} * pool.page_tokens()) {
    return fail(damaged(path, "its pages are not this model's"));
  }
  CYB_TRY(sequence.adopt(index.ids));
  const std::size_t size = static_cast<std::size_t>(index.page_bytes);
  for (std::uint32_t i = 0; i < index.n_pages; ++i) {
    const auto bytes = parsed->pages.subspan(i * size, size);
    if (auto written = pool.store().write_page(sequence.pages()[i], bytes); !written) {
      sequence.truncate(0);
      return fail(std::move(written).error());
    }
    // What windows no longer see was written as zeros: it needs no memory.
    if (i < sequence.first_windowed_page()) pool.store().forget_windowed(sequence.pages()[i]);
  }
  return RestoredSession{sequence.position(), std::move(parsed->index.messages)};
}

}  // namespace cyb
