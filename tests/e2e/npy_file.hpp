// .npy files for the tests of models of tensors, written by hand: not with the code under test.
#pragma once

#include <fstream>
#include <string>
#include <vector>

namespace cyb::test {

/// A .npy file of f32.
inline void write_npy(const std::string& path, const std::string& shape,
                      const std::vector<float>& values, const std::string& descr = "<f4") {
  std::string text = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  text.append(63 - (10 + text.size()) % 64, ' ');
  text += '\n';
  std::ofstream out(path, std::ios::binary);
  out.write("\x93NUMPY\x01\x00", 8);
  out.put(static_cast<char>(text.size() & 0xFF)).put(static_cast<char>(text.size() >> 8));
  out << text;
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(float)));
}

}  // namespace cyb::test
