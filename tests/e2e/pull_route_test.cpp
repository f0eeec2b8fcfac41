// POST /v1/models/pull of a real `serve`, with a hub on loopback: what comes, and from where
// nothing may.
#include <gtest/gtest.h>

#include "e2e/child.hpp"
#include "e2e/program.hpp"
#include "support/text_checkpoint.hpp"

namespace cyb::test {
namespace {

/// play.py PROGRAM FOLDER HUB_PORT, in FOLDER with m.model, keys and admins.
constexpr const char* kPlay = R"(
import atexit, http.client, json, os, signal, socket, subprocess, sys, threading, time
program, folder, hub = sys.argv[1:4]
os.chdir(folder)
NORMAL, ADMIN = "n" * 16, "a" * 16
processes = []
atexit.register(lambda: [process.kill() for process in processes])
def start(*options):
    errors = open("errors%d" % len(processes), "wb")
    processes.append(subprocess.Popen([program, "serve", "m.model", "--port", "0", "--threads", "1", "--api-key-file", "keys",
                                       "--admin-key-file", "admins", *options], stdout=subprocess.PIPE, stderr=errors))
    return processes[-1].stdout.readline().decode().split("//")[1].strip()
def need(condition, what):
    if condition: return
    for process in processes: process.kill()
    raise SystemExit("wrong: %s" % (what,))
def ask(method, path, body=None, key=ADMIN, at=None):
    connection = http.client.HTTPConnection(at or address, timeout=100)
    head = {"Content-Type": "application/json"}
    if key: head["Authorization"] = "Bearer " + key
    connection.request(method, path, None if body is None else json.dumps(body), head)
    reply = connection.getresponse()
    return reply.status, reply.read().decode()
def pull(source, key=ADMIN, at=None, **body): return ask("POST", "/v1/models/pull", {"source": source, **body}, key, at)
def code(reply): return reply[0], json.loads(reply[1])["error"]["code"]
def names(): return [model["id"] for model in json.loads(ask("GET", "/v1/models")[1])["data"]]
def log():
    until(lambda: os.path.exists("hub/log"), "the hub writes its first line behind its first answer")
    with open("hub/log") as file: return [json.loads(line) for line in file]
def until(condition, what):
    for i in range(1500):
        if condition(): return
        time.sleep(0.02)
    need(False, what)
def said(words): return words in open("errors0", "rb").read().decode()

address = start("--allow-pull", "http://127.0.0.1:" + hub)
need(pull("good/tiny", key=None)[0] == 401, "no key")
need(code(pull("good/tiny", key=NORMAL)) == (403, "admin_key_required"), "no admin's key")
for source in ["http://127.0.0.1:1/m.gguf", "http://169.254.169.254/latest/m.gguf", "https://127.0.0.1:%s/m.gguf" % hub,
               "http://localhost:%s/m.gguf" % hub, "cyb+http://192.0.2.1/m", "cyb://127.0.0.1/m"]:
    need(code(pull(source)) == (403, "pull_not_allowed"), source)
for source in ["file:///etc/passwd", "/etc/passwd", "gopher://127.0.0.1/m.gguf", "http://u:p@127.0.0.1:%s/m.gguf" % hub]:
    need(code(pull(source)) == (400, "invalid_value"), source)
reply = pull("http://127.0.0.1:%s/file/other/m/m.gguf" % hub)
need(code(reply) == (502, "pull_failed") and "N04" in reply[1], reply)
need(all(line["port"] == int(hub) for line in log()), "a redirect was followed elsewhere")
reply = pull("good/tiny", name="fresh")
need(reply[0] == 200 and json.loads(reply[1])["state"] == "unloaded", reply)
need(names() == ["m", "fresh"], names())
need(ask("POST", "/v1/completions", {"model": "fresh", "prompt": "Hi", "max_tokens": 2}, NORMAL)[0] == 200, "it answers")
need(code(pull("good/tiny", name="m")) == (409, "name_taken"), "a name that is taken")
need(code(pull("bad/none")) == (502, "pull_failed"), "what is not there")
status, text = pull("slow/large", stream=True)
events = [event[6:] for event in text.strip().split("\n\n")]
need(status == 200 and events[-1] == "[DONE]" and json.loads(events[-2])["model"]["id"] == "large", text)
need(len(events) > 2 and json.loads(events[0])["status"] == "pulling", text)
gone = socket.create_connection(("127.0.0.1", int(address.split(":")[1])))
body = json.dumps({"source": "slow/gone", "stream": True})
gone.sendall(("POST /v1/models/pull HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n"
              "Content-Length: %d\r\n\r\n%s" % (ADMIN, len(body), body)).encode())
until(lambda: any("slow/gone" in line["path"] and line["range"] for line in log()), "it begins")
need(code(pull("slow/gone")) == (409, "pull_running"), "one at a time")
gone.close()
until(lambda: said('could not pull "slow/gone"'), "a client that goes stops it")
need("gone" not in names(), names())
need(pull("slow/gone", detach=True)[0] == 202, "detached")
until(lambda: "gone" in names(), "it goes on without a client")
other = start()
need(code(pull("good/tiny", at=other)) == (403, "pull_off"), "off")
need(pull("slow/late", detach=True)[0] == 202, "one at the end")
for process in processes: process.send_signal(signal.SIGTERM)
began = time.monotonic()
need([process.wait(60) for process in processes] == [0, 0] and time.monotonic() - began < 10, "the end")
print("fine")
)";

TEST(PullRoute, FetchesFromAllowedOriginsAlone) {
  const Program program;
  for (const char* name : {"good/tiny", "slow/large", "slow/gone", "slow/late", "other/m"}) {
    const unsigned ffn = std::string(name) == "good/tiny" ? 96 : 20000;
    const std::string folder = program.file(std::string("hub/") + name);
    ASSERT_TRUE(write_text_checkpoint(folder, {.ffn = ffn}));
  }
  std::filesystem::copy_file(golden("gguf/llama.gguf"), program.file("hub/other/m/m.gguf"));
  ASSERT_TRUE(write_text_checkpoint(program.file("source")));
  ASSERT_EQ(
      program.run({"import", program.file("source"), "-o", program.file("m.model")}).exit_code, 0);
  write_all(program.file("keys"), std::string(16, 'n') + "\n");
  write_all(program.file("admins"), std::string(16, 'a') + "\n");
  write_all(program.file("play.py"), kPlay);
  const Child hub({"python3", std::string(CYB_TESTS_DIR) + "/e2e/hub/hub.py", program.file("hub"),
                   program.file("port")},
                  {});
  const std::string port = wait_for_text(program.file("port"));
  ProcessOptions options;
  options.environment = program.environment();
  options.environment.push_back("HF_ENDPOINT=http://127.0.0.1:" + port);
  options.environment.push_back("no_proxy=127.0.0.1,localhost");
  options.timeout_s = 200;
  const ProcessResult result = run_process(
      {"python3", program.file("play.py"), built_program("cyb-llm"), program.file(""), port},
      options);
  EXPECT_EQ(result.out, "fine\n") << result.err << read_all(program.file("errors0"));
}

}  // namespace
}  // namespace cyb::test
