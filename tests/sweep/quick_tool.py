"""Stands for `python -m trtconv`: the same words and files, milliseconds instead of seconds.

A model's behaviour is in its name, which every file carries on: `wrong` differs, `refused` is unsupported, `hangs`
sleeps in its rewrite, `crashes` is killed there, `full` finds no space, `flaky` is killed the first time. Every command
that starts and ends is a line in the file that QUICK_LOG names.
"""

import json
import os
import signal
import sys
import time
import zipfile

KINDS = {"rewrite": "model.onnx", "build": "model.trt.onnx"}


def log(word):
    with open(os.environ["QUICK_LOG"], "a") as stream:
        stream.write(f"{word} {os.environ.get('TRTCONV_JOB', '-')}\n")


def option(words, flag):
    return words[words.index(flag) + 1]


def fail(code, message):
    print(f"error: {message}", file=sys.stderr)
    log("end")
    sys.exit(code)


def rewrite_trouble(content):
    if "hangs" in content:
        time.sleep(60)
    marker = os.environ["QUICK_LOG"] + ".flaky"
    first = "flaky" in content and not os.path.exists(marker)
    if first:
        open(marker, "w").close()
    if "crashes" in content or first:
        os.kill(os.getpid(), signal.SIGKILL)
    if "full" in content:
        fail(2, f"the output cannot be written: {os.strerror(28)}")
    if "refused" in content:
        fail(4, "the target lacks a node")


def check(words):
    with open(words[1]) as stream:
        wrong = "wrong" in stream.read()
    compared = {"output": "y", "point": "opt", "passed": not wrong, "reason": "2 of 4 differ", "max_share": 0.5,
                "max_scaled": 1e-6}  # fmt: skip
    with open(option(words, "--json"), "w") as stream:
        json.dump({"comparisons": [compared], "findings": []}, stream)
    with open(option(words, "--html"), "w") as stream:
        stream.write("<p>report</p>")
    if wrong:
        fail(3, "y differs")


def measure(path, model):
    """Add what this build measured to the timing cache: the model's name under a key of its own."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"{model.encode().hex():0>24}.timing", model)


def tune(words):
    """A contract that models called `drops` cannot keep, and that makes those called `slow` no faster."""
    with open(words[1]) as stream:
        content = stream.read()
    if "drops" in content:
        fail(3, "no candidate keeps the contract (top1 at most 0.5% below fp32)")
    if "slow" in content:
        fail(6, "no candidate that keeps the contract is faster than fp32")
    on_gpu = "judged" in content
    os.mkdir(option(words, "-o"))
    for name in ("model.onnx", "model.trt.onnx", "model.engine", "model.report.html", "model.tune.json"):
        with open(os.path.join(option(words, "-o"), name), "w") as stream:
            stream.write(f"{content} tuned {name}")
    chosen = {"name": "int8 of all", "precision": "int8", "seconds": 0.5e-3 if on_gpu else None}
    shipped = {"judging": 0.9877, **({"engine_judging": 0.98} if on_gpu else {})}
    contract = {"metric": "top1", "max_drop": "0.5%"}
    baseline = {"judging": 0.9901, "seconds": 1e-3 if on_gpu else None}
    print(
        json.dumps({"contract": contract, "chosen": chosen, "shipped": shipped, "baseline": baseline, "complete": True})
    )


def main(words):
    if words[0] == "version":
        print(json.dumps({"trtconv": "quick"}))
        return
    log("start")
    time.sleep(float(os.environ.get("QUICK_SECONDS", "0")))
    if words[0] == "check":
        check(words)
    elif words[0] == "tune":
        tune(words)
    elif words[0] == "repro":
        with open(option(words, "-o"), "w") as stream:
            stream.write("smallest part")
    elif words[0] == "bench":
        with open(option(words, "--json"), "w") as stream:
            json.dump({"latencies": [{"point": "opt", "device": {"median": 0.001}}]}, stream)
    else:
        word, content = words[0], words[1]
        if words[0] != "export":
            with open(words[1]) as stream:
                content = stream.read()
        if "--rewritten" in words:
            with open(option(words, "--rewritten")) as stream:
                content, word = stream.read(), "typed"
        elif words[0] == "rewrite":
            rewrite_trouble(content)
        if "broken" in content:
            fail(1, "no checkpoint")
        if "--timing-cache" in words:
            measure(option(words, "--timing-cache"), content.split()[0].rpartition(":")[2])
        with open(option(words, "-o"), "w") as stream:
            stream.write(f"{content} {word}")
        print(json.dumps({"exporter": "quick"}))
    log("end")


main(sys.argv[1:])
