"""Injects faults into real jobs and compares their results with undisturbed ones; run by faults.sh."""

import glob
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else random.randrange(10**6)
RANDOM = random.Random(SEED)
ROOT = os.getcwd()
LEJEPA = os.path.join(os.environ.get("CARGO_TARGET_DIR", "target"), "release/lejepa")
# Typed again so often at most before a job counts as one that never ends.
PATIENCE = 40
# A step of nothing.
HANGS = 300

RECIPE = """
seed = 3
[data]
path = "data"
[views]
global = {{ count = 2, scale = [0.4, 1.0] }}
local = {{ count = 1, scale = [0.2, 0.5] }}
preset = "grey"
[encoder]
{encoder}
[projector]
hidden = [64]
dim = 16
[loss]
slices = 64
[train]
epochs = {epochs}
batch = 32
checkpoint_every = 10
{more}
"""
VIT = 'arch = "vit"\nimage_size = 28\nchannels = 1\npatch_size = 7\ndim = 64\ndepth = 3\nheads = 4\ndrop_path = 0.1'
RESNET = (
    'arch = "resnet"\nimage_size = 28\nchannels = 1\ndepths = [1, 1, 1, 1]\nwidths = [8, 16, 16, 32]\nblock = "basic"'
)
EMA = "micro_batch = 16\n[averaging]\nkind = \"ema\"\ndecay = 0.9\n[predictor]\nhidden = [16]"
GRID = 'recipe = "vit.toml"\n[set]\ntrain.epochs = 0.2\n[grid]\n"loss.lambda" = [0.02, 0.2]\n"optimizer.lr" = [5e-4, 2e-3]\n'


@dataclass
class Job:
    """A command that writes into a folder, and what of it must always be the same."""

    name: str
    # Arguments, with {out} for the folder.
    command: str
    # Of the folder: something to compare.
    result: object
    kills: int
    seconds: float = 0.0
    expected: object = None
    checkpoints: bool = False
    size: int = 0


def checkpoints(run):
    return sorted(glob.glob(os.path.join(run, "checkpoints", "*.safetensors")))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def trained(run):
    """The last checkpoint and the losses of all steps."""
    with open(os.path.join(run, "metrics.jsonl")) as file:
        lines = [json.loads(line) for line in file]
    losses = [(line["step"], line["loss"]) for line in lines if "loss" in line]
    return os.path.basename(checkpoints(run)[-1]), read(checkpoints(run)[-1]), losses


def swept(folder):
    with open(os.path.join(folder, "sweep.json")) as file:
        text = json.load(file)
    return without_times(text, folder)


def exported(folder):
    return read(os.path.join(folder, "encoder.onnx")), read(os.path.join(folder, "preprocessor_config.json"))


def embedded(folder):
    left = sorted(os.listdir(folder))
    return left, read(os.path.join(folder, "features.npy")), read(os.path.join(folder, "features.csv"))


def evaluated(folder):
    with open(os.path.join(folder, "report.json")) as file:
        sets = json.load(file)["datasets"]
    return [
        (result["candidate"], result["probe"], result["shots"], result["accuracy"], result["confusion"])
        for dataset in sets
        for result in dataset["results"]
    ]


def without_times(value, folder):
    """Durations and the folder's own name may differ."""
    if isinstance(value, dict):
        times = ("seconds", "images_per_second", "time", "command")
        return {key: without_times(part, folder) for key, part in value.items() if key not in times}
    if isinstance(value, list):
        return [without_times(part, folder) for part in value]
    return value.replace(folder, "OUT") if isinstance(value, str) else value


class Campaign:
    def __init__(self, work):
        self.work = work
        self.counts = {}
        self.complaints = []
        self.number = 0

    def folder(self, parent=None):
        self.number += 1
        # Of one length, so that the same command has results of the same size.
        return os.path.join(parent or self.work, f"out{self.number:04}")

    def start(self, job, out):
        command = [LEJEPA, *job.command.format(out=out).split()]
        log = open(os.path.join(self.work, "log.txt"), "ab")
        return subprocess.Popen(command, cwd=self.work, stdout=log, stderr=log, start_new_session=True)

    def finish(self, job, out):
        """Runs the command to its end; its exit code."""
        process = self.start(job, out)
        try:
            return process.wait(HANGS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return "hangs"

    def check(self, job, fault, out, injected=1, problem=None):
        """The command again, until it ends: is everything as if nothing had happened?"""
        code = None
        if problem is None:
            code = self.finish(job, out)
            if code != 0:
                problem = f"the same command again ends with {code}"
            else:
                try:
                    if job.result(out) != job.expected:
                        problem = "the result is another one"
                except (OSError, KeyError, IndexError, ValueError) as error:
                    problem = f"no result: {error}"
        row = self.counts.setdefault((fault, job.name), [0, 0, 0])
        row[0] += injected
        row[2 if problem else 1] += injected
        said = f"{fault}, {job.name}: {problem or 'survived'}"
        print(f"faults: {said}", file=sys.stderr, flush=True)
        if problem:
            self.complaints.append(said)
        else:
            shutil.rmtree(out, ignore_errors=True)

    def undisturbed(self, job):
        # The second time nothing is read for the first time.
        for _ in range(2):
            out = self.folder()
            begin = time.monotonic()
            code = self.finish(job, out)
            job.seconds = time.monotonic() - begin
            if code != 0:
                sys.exit(f"error: {job.name} fails undisturbed ({code}): see {self.work}/log.txt")
            result = job.result(out)
            if job.expected is not None and result != job.expected:
                sys.exit(f"error: {job.name} is not reproducible, nothing can be compared")
            job.expected = result
            job.size = sum(os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(out) for name in names)
            if job.name != "ViT":
                shutil.rmtree(out)
        print(f"faults: {job.name}: {job.seconds:.1f} s undisturbed", file=sys.stderr)

    def interrupt(self, job, number, fault):
        """Some interruptions of one job at random moments, then its end."""
        out, injected = self.folder(), 0
        for _ in range(PATIENCE):
            if injected == number:
                break
            process = self.start(job, out)
            time.sleep(RANDOM.uniform(0, 0.9 * job.seconds))
            if process.poll() is None:
                os.killpg(process.pid, fault)
                injected += 1
                code = process.wait()
                if fault == signal.SIGTERM and code not in (0, 128 + fault, -fault):
                    return self.check(job, fault.name, out, injected, f"ends with {code}")
            elif process.returncode != 0:
                return self.check(job, fault.name, out, injected, f"ends with {process.returncode}")
            else:
                # It was done before; the next one begins anew.
                self.check(job, fault.name, out, 0)
                out = self.folder()
        self.check(job, fault.name, out, injected)

    def full_disk(self, job):
        disk = self.folder()
        os.mkdir(disk)
        for share in (0.3, 0.8):
            size = max(int(share * job.size), 4096)
            mounted = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk]
            if subprocess.run(mounted, stderr=subprocess.DEVNULL).returncode != 0:
                print("faults: no disk can be mounted here: a full one was not tried", file=sys.stderr)
                return
            out = self.folder(disk)
            code = self.finish(job, out)
            problem = None if code in (0, 1) else f"ends with {code}"
            subprocess.run(["mount", "-o", "remount,size=1g", disk], check=True)
            # What fits after all was no fault.
            self.check(job, "disk full", out, int(code != 0), problem)
            subprocess.run(["umount", disk], check=True)

    def two_at_once(self, job):
        out = self.folder()
        both = [self.start(job, out), self.start(job, out)]
        codes = [process.wait() for process in both]
        problem = None if 0 in codes and all(code in (0, 1, 2) for code in codes) else f"they end with {codes}"
        self.check(job, "two at once", out, 1, problem)

    def clock_back(self, job):
        out = self.folder()
        process = self.start(job, out)
        time.sleep(RANDOM.uniform(0.3, 0.7) * job.seconds)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        # As if all that is there were written tomorrow.
        tomorrow = time.time() + 86400
        for place, _, names in os.walk(out):
            for name in [".", *names]:
                os.utime(os.path.join(place, name), (tomorrow, tomorrow))
        self.check(job, "clock back", out)

    def damaged_checkpoint(self, job, fault, damage):
        out = self.folder()
        for _ in range(PATIENCE):
            process = self.start(job, out)
            time.sleep(RANDOM.uniform(0.4, 0.8) * job.seconds)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            found = checkpoints(out)
            if len(found) > 1 and found[-1] != job.expected[0]:
                break
            if process.returncode == 0:
                shutil.rmtree(out)
        damage(checkpoints(out))
        self.check(job, fault, out)

    def table(self):
        print(f"\n{'fault':<22} {'job':<16} {'injected':>8} {'survived':>8} {'lost':>6}")
        total = [0, 0, 0]
        for (fault, job), row in self.counts.items():
            print(f"{fault:<22} {job:<16} {row[0]:>8} {row[1]:>8} {row[2]:>6}")
            total = [sum(pair) for pair in zip(total, row)]
        print(f"{'all':<22} {'':<16} {total[0]:>8} {total[1]:>8} {total[2]:>6}")
        print(f"seed {SEED}")
        for complaint in self.complaints:
            print(f"lost: {complaint}")


def truncate(found):
    os.truncate(found[-1], RANDOM.randrange(os.path.getsize(found[-1])))


def flip(found):
    with open(found[-1], "r+b") as file:
        # Beyond the header, where a changed number would go unnoticed.
        file.seek(RANDOM.randrange(os.path.getsize(found[-1]) // 2, os.path.getsize(found[-1])))
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 0x10]))


def replace_by_older(found):
    shutil.copyfile(found[-2], found[-1])


def write_inputs(work):
    for recipe, encoder, epochs, more in [("vit", VIT, 0.6, ""), ("resnet", RESNET, 0.4, EMA)]:
        with open(os.path.join(work, f"{recipe}.toml"), "w") as file:
            file.write(RECIPE.format(encoder=encoder, epochs=epochs, more=more))
    with open(os.path.join(work, "grid.toml"), "w") as file:
        file.write(GRID)
    os.mkdir(os.path.join(work, "data"))
    source = os.path.join(ROOT, ".lejepa/data/fashion-mnist")
    for kind, size in [("images-idx3", 16 + 784 * 10000), ("labels-idx1", 8 + 10000)]:
        with gzip.open(f"{source}/t10k-{kind}-ubyte.gz") as file:
            content = file.read(size)
        for split in ("train", "t10k"):
            with open(os.path.join(work, "data", f"{split}-{kind}-ubyte"), "wb") as file:
                file.write(content)


def jobs(encoder, run):
    return [
        Job("ViT", "train --config vit.toml --out {out}", trained, 12, checkpoints=True),
        Job("ResNet with EMA", "train --config resnet.toml --out {out}", trained, 12, checkpoints=True),
        Job("sweep", "sweep grid.toml --out {out}", swept, 8),
        Job("export", f"export {run} --out {{out}}/encoder.onnx", exported, 6),
        Job("embed", f"embed data --encoder {encoder} --out {{out}}/features.npy", embedded, 6),
        Job(
            "eval",
            f"eval {encoder} --suite quick --data data --out {{out}} --cache {{out}}.cache",
            evaluated,
            6,
        ),
    ]


def main():
    global LEJEPA
    LEJEPA = os.path.abspath(LEJEPA)
    os.environ["ORT_DYLIB_PATH"] = glob.glob(os.path.join(ROOT, ".lejepa/onnxruntime/libonnxruntime.so.*"))[0]
    with tempfile.TemporaryDirectory(prefix="lejepa-faults-") as work:
        write_inputs(work)
        campaign = Campaign(work)
        encoder = os.path.join(ROOT, "models/fashion-mnist-vit/encoder.onnx")
        # The first thing that is done undisturbed is what the exports are of.
        for job in jobs(encoder, os.path.join(work, "out0001")):
            campaign.undisturbed(job)
            left = job.kills
            while left > 0:
                number = min(left, RANDOM.randint(1, 4))
                campaign.interrupt(job, number, signal.SIGKILL)
                left -= number
            campaign.interrupt(job, 2, signal.SIGTERM)
            campaign.full_disk(job)
            campaign.two_at_once(job)
            campaign.clock_back(job)
            if job.checkpoints:
                for fault, damage in [("truncated", truncate), ("flipped", flip), ("older", replace_by_older)]:
                    campaign.damaged_checkpoint(job, f"checkpoint {fault}", damage)
        campaign.table()
        if campaign.complaints:
            shutil.copyfile(os.path.join(work, "log.txt"), os.path.join(ROOT, "target/faults.log"))
            sys.exit(1)


main()
