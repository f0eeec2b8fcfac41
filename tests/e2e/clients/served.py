"""A running `cyb-llm serve` for the scripts of this folder."""
import argparse
import contextlib
import signal
import subprocess

KEY = "a key for this test alone"


@contextlib.contextmanager
def served(program, model, *options):
    """The address of a server that answers as the model "served"; it must end with exit code 0."""
    process = subprocess.Popen([program, "serve", model, "--port", "0", "--name", "served", *options], stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("listening on http://127.0.0.1:"), line
        yield line.split()[-1]
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=60)
    assert code == 0, code


def run(description, checks, *options):
    """Runs each check with the server's address. usage of the script: NAME.py --program build/release/cyb-llm MODEL"""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("model")
    parser.add_argument("--program", default="build/release/cyb-llm")
    arguments = parser.parse_args()
    with served(arguments.program, arguments.model, *(options or ("--ctx", "512", "--slots", "8"))) as address:
        for check in checks:
            check(address)
            print(f"ok {check.__name__}")


def raises(error, call, **expected):
    """`call` must raise `error` with these attributes."""
    try:
        call()
    except error as caught:
        for name, value in expected.items():
            assert getattr(caught, name) == value, (name, getattr(caught, name), caught)
        return caught
    raise AssertionError(f"no {error.__name__}")
