// A certificate for "localhost" that a test makes.
#pragma once

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cstdio>
#include <memory>
#include <string>

namespace cyb::test {

template <auto Free>
struct Freed {
  void operator()(auto* p) const { Free(p); }
};

/// A key and a certificate that it signs itself; no files where it fails.
inline void write_certificate(const std::string& certificate, const std::string& key_file) {
  const std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>> key(EVP_EC_gen("P-256"));
  const std::unique_ptr<X509, Freed<X509_free>> x509(X509_new());
  X509_set_version(x509.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x509.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(x509.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(x509.get()), 3600);
  X509_set_pubkey(x509.get(), key.get());
  X509_NAME* name = X509_get_subject_name(x509.get());
  const auto* text = reinterpret_cast<const unsigned char*>("localhost");
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0);
  X509_set_issuer_name(x509.get(), name);
  if (X509_sign(x509.get(), key.get(), EVP_sha256()) <= 0) return;
  std::FILE* file = std::fopen(certificate.c_str(), "w");
  if (file == nullptr) return;
  PEM_write_X509(file, x509.get());
  std::fclose(file);
  file = std::fopen(key_file.c_str(), "w");
  if (file == nullptr) return;
  PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
}

}  // namespace cyb::test
