// serve as a process: its configuration, read again by SIGHUP; SIGTERM under load.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "e2e/program.hpp"
#include "support/certificate.hpp"
#include "support/text_checkpoint.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;

/// Starts serve (argv[1]) with serve.toml in the folder argv[2]; a scenario follows.
constexpr const char* kStart = R"(
import http.client, json, os, signal, subprocess, sys, threading, time
program, folder = sys.argv[1:3]
os.chdir(folder)
errors = open("errors", "wb")
process = subprocess.Popen([program, "serve", "--config", "serve.toml"], stdout=subprocess.PIPE, stderr=errors)
address = process.stdout.readline().decode().split("//")[1].strip()
def write(name, text):
    with open(name + ".new", "w") as file: file.write(text)
    os.rename(name + ".new", name)
def ask(key=None, host=None, connection=None, **body):
    connection = connection or http.client.HTTPConnection(address, timeout=60)
    headers = {"Content-Type": "application/json"}
    if key: headers["Authorization"] = "Bearer " + key
    if host: headers["Host"] = host
    body = {"prompt": "Tell me", "max_tokens": 4, "temperature": 0, **body}
    connection.request("POST", "/v1/completions", json.dumps(body), headers)
    reply = connection.getresponse()
    return reply.status, reply.read().decode()
def said(words):
    for i in range(600):
        with open("errors", "rb") as file: text = file.read().decode()
        if words in text: return True
        time.sleep(0.02)
    process.kill()
    raise SystemExit("not said: " + words + "\n" + text)
def need(condition, what):
    if not condition: process.kill(); raise SystemExit("wrong: " + what)
)";

constexpr const char* kHangup = R"(
A, B, C = "a" * 16, "b" * 16, "c" * 16
kept = http.client.HTTPConnection(address, timeout=60)
need(ask(A, connection=kept)[0] == 200, "first key")
need(ask(B)[0] == 401, "second key before")
need(ask(A, host="box.example")[0] == 403, "host before")
stream = http.client.HTTPConnection(address, timeout=60)
stream.request("POST", "/v1/completions", json.dumps({"prompt": "Tell me", "max_tokens": 60, "stream": True, "ignore_eos": True}),
               {"Content-Type": "application/json", "Authorization": "Bearer " + A})
reply = stream.getresponse()
write("keys", A + "\n" + B + "\n")
write("serve.toml", open("serve.toml").read().replace("slots = 2", "slots = 3") + 'allow-host = ["box.example"]\n')
process.send_signal(signal.SIGHUP)
said("SIGHUP: read again: 2 keys, 1 further hosts; changed, and taken at the next start alone: slots")
need(ask(B)[0] == 200 and ask(A)[0] == 200, "both keys")
need(ask(B, host="box.example")[0] == 200, "host after")
need(reply.read().decode().endswith("data: [DONE]\n\n"), "the stream goes on")
need(ask(A, connection=kept)[0] == 200, "the connection stays")
write("serve.toml", open("serve.toml").read() + "prot = 1\n")
write("keys", C + "\n")
process.send_signal(signal.SIGHUP)
said('SIGHUP: all stays as it was: serve.toml, line 7: unknown key "prot"')
need(ask(B)[0] == 200 and ask(C)[0] == 401, "a broken file changes nothing")
write("serve.toml", open("serve.toml").read().replace("prot = 1\n", ""))
process.send_signal(signal.SIGHUP)
said("SIGHUP: read again: 1 keys")
need(ask(B)[0] == 401 and ask(C)[0] == 200, "a key that was taken away")
process.send_signal(signal.SIGTERM)
need(process.wait(60) == 0, "exit code")
print("fine")
)";

constexpr const char* kTerminate = R"(
answers, refused = [], []
def client(n):
    while True:
        body = {"max_tokens": 20 + n, "ignore_eos": True, "stream": n % 2 == 0, "seed": n}
        try: status, text = ask("a" * 16, **body)
        except ConnectionRefusedError: return
        except (ConnectionResetError, http.client.RemoteDisconnected): refused.append("closed unread"); return
        except http.client.IncompleteRead: answers.append((n, "cut")); return
        if status == 503: refused.append(text); return
        whole = text.endswith("data: [DONE]\n\n") if n % 2 == 0 else json.loads(text)["choices"][0]["finish_reason"] == "length"
        answers.append((n, "whole" if whole and status == 200 else text))
threads = [threading.Thread(target=client, args=(n,)) for n in range(8)]
for thread in threads: thread.start()
while len(answers) < 20: time.sleep(0.01)
process.send_signal(signal.SIGTERM)
for thread in threads: thread.join()
need(process.wait(60) == 0, "exit code")
broken = [answer for answer in answers if answer[1] != "whole"]
need(not broken, str(broken))
said("finishing what runs")
with open("errors", "rb") as file: log = file.read().decode()
need(log.count(" 200 ") == len(answers), "%d answers in the log, %d arrived" % (log.count(" 200 "), len(answers)))
need(" 499 " not in log and " 500 " not in log, log)
print("fine")
)";

/// Certificates first.pem and second.pem (with .key) are there; cert.pem and cert.key are served.
constexpr const char* kCertificate = R"(
import shutil, socket, ssl
trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
def shown():
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as plain, trusting.wrap_socket(plain) as tls: return tls.getpeercert(True)
def of(name): return ssl.PEM_cert_to_DER_cert(open(name).read())
def serve(certificate, key):
    shutil.copy(certificate, "cert.pem")
    shutil.copy(key, "cert.key")
    process.send_signal(signal.SIGHUP)
kept = http.client.HTTPSConnection(address, timeout=60, context=trusting)
need(ask("a" * 16, connection=kept)[0] == 200, "an answer by TLS")
own = kept.sock
need(shown() == of("first.pem"), "the first certificate")
serve("second.pem", "second.key")
said("SIGHUP: read again: 1 keys, 0 further hosts, certificate")
need(shown() == of("second.pem"), "the second certificate")
need(ask("a" * 16, connection=kept)[0] == 200 and kept.sock is own, "the old connection lives")
serve("keys", "second.key")
said('SIGHUP: all stays as it was: input: "cert.pem" holds no certificate chain in PEM')
need(shown() == of("second.pem"), "no certificate changes nothing")
serve("first.pem", "second.key")
said('SIGHUP: all stays as it was: input: "cert.key" holds no private key of "cert.pem"')
need(shown() == of("second.pem"), "the key of another changes nothing")
need(ask("a" * 16, connection=kept)[0] == 200 and kept.sock is own, "the old connection still lives")
process.send_signal(signal.SIGTERM)
need(process.wait(60) == 0, "exit code")
print("fine")
)";

class ServeConfig : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string source = program_.file("source");
    ASSERT_TRUE(write_text_checkpoint(source));
    const ProcessResult result = program_.run({"import", source, "-o", model_});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    write("keys", std::string(16, 'a') + "\n");
    write("serve.toml", "model = \"" + model_ +
                            "\"\nport = 0\nthreads = 1\nslots = 2\n"
                            "api-key-file = \"keys\"\n");
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(program_.file(name), std::ios::binary) << text;
  }
  void play(const char* scenario) const {
    write("play.py", std::string(kStart) + scenario);
    ProcessOptions options;
    options.environment = program_.environment();
    options.timeout_s = 120;
    const ProcessResult result = run_process(
        {"python3", program_.file("play.py"), built_program("cyb-llm"), program_.file("")},
        options);
    EXPECT_EQ(result.out, "fine\n") << result.err;
  }
  ProcessResult print(std::vector<std::string> more, ProcessOptions options = {}) const {
    more.insert(more.begin(), {"serve", "--print-config"});
    return program_.run(more, std::move(options));
  }

  Program program_;
  std::string model_ = program_.file("m.model");
};

TEST_F(ServeConfig, FlagBeforeVariableBeforeFile) {
  const std::string file = program_.file("serve.toml");
  ProcessOptions options;
  options.environment = {"CYB_SERVE_CONFIG=" + file, "CYB_SERVE_SLOTS=5", "CYB_SERVE_MAX_QUEUE=9"};
  ProcessResult result =
      print({"--max-queue", "10", "--allow-host", "a", "--allow-host", "b"}, options);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const std::string& line : {std::string("slots = 5  # CYB_SERVE_SLOTS\n"),
                                  std::string("max-queue = 10  # --max-queue\n"),
                                  std::string("allow-host = [\"a\", \"b\"]  # --allow-host\n"),
                                  "port = 0  # " + file + ", line 2\n",
                                  "model = [\"" + model_ + "\"]  # " + file + ", line 1\n",
                                  std::string("# host: 127.0.0.1, the default\n")}) {
    EXPECT_NE(result.out.find(line), std::string::npos) << line << result.out;
  }
  options.environment = {"CYB_SERVE_SLOT=5"};
  result = print({}, options);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("unknown variable \"CYB_SERVE_SLOT\"; did you mean CYB_SERVE_SLOTS?"),
            std::string::npos)
      << result.err;
  write("bad.toml", "port = 1\nslot = 2\n");
  result = print({"--config", program_.file("bad.toml")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("bad.toml, line 2: unknown key \"slot\"; did you mean slots?"),
            std::string::npos)
      << result.err;
}

TEST_F(ServeConfig, SighupReadsKeysAndHostsAgain) {
  play(kHangup);
}

TEST_F(ServeConfig, SighupRenewsTheCertificate) {
  for (const char* name : {"first", "second", "cert"})
    write_certificate(program_.file(std::string(name) + ".pem"),
                      program_.file(std::string(name) + ".key"));
  for (const char* end : {".pem", ".key"})
    std::filesystem::copy_file(program_.file("first") + end, program_.file("cert") + end,
                               std::filesystem::copy_options::overwrite_existing);
  std::ofstream(program_.file("serve.toml"), std::ios::app)
      << "tls-cert = \"cert.pem\"\ntls-key = \"cert.key\"\n";
  play(kCertificate);
}

TEST_F(ServeConfig, SigtermUnderLoadLosesNoAnswer) {
  play(kTerminate);
}

}  // namespace
}  // namespace cyb::test
