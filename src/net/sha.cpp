// On OpenSSL, which has them in the processor's own instructions.
#include "net/sha.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

namespace cyb::net {

void Sha::Free::operator()(void* context) const noexcept {
  EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context));
}

Sha::Sha(Kind kind, std::uint64_t size) : context_(EVP_MD_CTX_new()) {
  auto* context = static_cast<EVP_MD_CTX*>(context_.get());
  EVP_DigestInit_ex(context, kind == Kind::kSha256 ? EVP_sha256() : EVP_sha1(), nullptr);
  if (kind == Kind::kSha256) return;
  const std::string head = fmt::format("blob {}", size);
  EVP_DigestUpdate(context, head.c_str(), head.size() + 1);
}

void Sha::update(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_.get()), bytes.data(), bytes.size());
}

std::string Sha::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_.get()), digest.data(), &size);
  std::string out;
  for (unsigned i = 0; i < size; ++i) out += fmt::format("{:02x}", digest[i]);
  return out;
}

bool is_hex(std::string_view text, std::size_t n_digits) noexcept {
  return text.size() == n_digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace cyb::net
