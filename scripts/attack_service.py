"""The attacks of attack-service.sh: standard library only. Attackers come from 127.0.0.2 and above (Linux answers
for all of 127.0.0.0/8), the client that counts from 127.0.0.1."""

import argparse
import http.client
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib


def png(height, width):
    """A black picture in colour: a few bytes for any number of pixels."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(1 + 3 * width)) for _ in range(height)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def progressive_jpeg(scans, height=2000, width=2000):
    """A grey picture in many scans, of which each goes over all blocks and takes fourteen bytes."""
    def segment(marker, content):
        return bytes([0xff, marker]) + struct.pack(">H", len(content) + 2) + content
    def scan(first, last, bits):
        bits += "1" * (-len(bits) % 8)
        data = bytes(int(bits[place:place + 8], 2) for place in range(0, len(bits), 8))
        return segment(0xda, bytes([1, 1, 0, first, last, 0])) + data.replace(b"\xff", b"\xff\x00")
    def table(place, symbol):
        """Of one code, the bit 0."""
        return segment(0xc4, bytes([place, 1] + [0] * 15 + [symbol]))
    blocks = -(-height // 8) * -(-width // 8)
    # Runs of at most 32,767 blocks without values: the code for 2^14 and 14 bits.
    runs, left = "", blocks
    while left > 0:
        run = left if left <= 32767 else min(32767, left - 16384)
        runs, left = runs + "0" + format(run - 16384, "014b"), left - run
    frame = segment(0xc2, struct.pack(">BHHBBBB", 8, height, width, 1, 1, 0x11, 0))
    tables = segment(0xdb, bytes([0] + [1] * 64)) + table(0x00, 0) + table(0x10, 0xe0)
    return b"\xff\xd8" + tables + frame + scan(0, 0, "0" * blocks) + scan(1, 63, runs) * scans + b"\xff\xd9"


def form(files):
    parts = b"".join(
        b'--edge\r\nContent-Disposition: form-data; name="%d"; filename="a.png"\r\n\r\n%s\r\n' % (index, file)
        for index, file in enumerate(files))
    return parts + b"--edge--\r\n"


SMALL = png(64, 64)
BOMB = png(7000, 7000)
# Far more than are accepted, and as many.
MANY_SCANS = progressive_jpeg(20_000)
MOST_SCANS = progressive_jpeg(99)
FORM = "multipart/form-data; boundary=edge"


def request(body, kind="image/png"):
    head = f"POST /embed HTTP/1.1\r\nHost: here\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Service:
    def __init__(self, program, encoder, flags):
        self.process = subprocess.Popen(
            [program, encoder, "--address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0", *flags],
            stderr=subprocess.PIPE, text=True)
        self.log = []
        self.port, self.admin = self.address("/embed"), self.address("health")
        threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True).start()

    def address(self, word):
        for line in self.process.stderr:
            self.log.append(line)
            if word in line:
                return int(re.search(r"http://[^/]*:(\d+)", line)[1])
        sys.exit("the service did not start:\n" + "".join(self.log))

    def memory(self, field="VmRSS"):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) / 1000 for line in status if line.startswith(field))

    def forget_peak(self):
        with open(f"/proc/{self.process.pid}/clear_refs", "w") as file:
            file.write("5")


class Honest(threading.Thread):
    """Asks one thing after the other, every time over a new connection."""

    def __init__(self, service):
        super().__init__(daemon=True)
        self.service, self.over, self.sent, self.served, self.worst, self.gap = service, False, 0, 0, 0., 0.
        self.unhealthy = 0

    def run(self):
        last = time.monotonic()
        while not self.over:
            start = time.monotonic()
            self.sent += 1
            try:
                client = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=120)
                client.request("POST", "/embed", SMALL, {"Content-Type": "image/png"})
                answer = client.getresponse()
                answer.read()
                client.close()
                if answer.status == 200:
                    self.served += 1
                    self.worst = max(self.worst, time.monotonic() - start)
                    self.gap, last = max(self.gap, time.monotonic() - last), time.monotonic()
            except OSError:
                pass
            try:
                health = http.client.HTTPConnection("127.0.0.1", self.service.admin, timeout=10)
                health.request("GET", "/healthz")
                self.unhealthy += health.getresponse().status != 200
                health.close()
            except OSError:
                self.unhealthy += 1
            time.sleep(0.02)
        # Nothing since the last answer counts too.
        self.gap = max(self.gap, time.monotonic() - last)


class Attacker:
    def __init__(self, port, seconds):
        self.port, self.end, self.sockets = port, time.monotonic() + seconds, []

    def connect(self, last=2):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.bind((f"127.0.0.{last}", 0))
        client.settimeout(5)
        client.connect(("127.0.0.1", self.port))
        self.sockets.append(client)
        return client

    def many(self, count, work):
        """Until the time is over, in so many threads."""
        def repeat(number):
            while time.monotonic() < self.end:
                try:
                    work(number)
                except OSError:
                    time.sleep(0.05)
        threads = [threading.Thread(target=repeat, args=(number,), daemon=True) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0, self.end + 60 - time.monotonic()))

    def trickle(self, start, rest, count=130):
        """Connections that send a byte of the rest every half second, and come again when they are closed."""
        clients = []
        while time.monotonic() < self.end:
            while len(clients) < count:
                try:
                    client = self.connect(2 + len(clients) % 2)
                    client.sendall(start)
                    clients.append(client)
                except OSError:
                    break
            alive = []
            for client in clients:
                try:
                    client.sendall(rest)
                    alive.append(client)
                except OSError:
                    client.close()
            clients = alive
            time.sleep(0.5)

    def slow_head(self):
        self.trickle(b"POST /embed HTTP/1.1\r\n", b"x")

    def slow_body(self):
        self.trickle(request(SMALL)[:-len(SMALL)], b"x")

    def slow_read(self):
        pipelined = b"GET /nothing HTTP/1.1\r\nHost: here\r\n\r\n" * 2000 + request(form([SMALL] * 32), FORM) * 8
        def work(number):
            client = self.connect(2 + number % 2)
            client.settimeout(1)
            try:
                client.sendall(pipelined)
            except TimeoutError:
                pass
            while time.monotonic() < self.end and client.recv(1):
                time.sleep(1)
        self.many(55, work)

    def post(self, body, number, kind=FORM):
        client = self.connect(2 + number % 2)
        client.settimeout(60)
        client.sendall(request(body, kind))
        client.recv(100)
        client.close()

    def many_parts(self):
        body = form([b"x"] * 10_000)
        self.many(16, lambda number: self.post(body, number))

    def form_bomb(self, images):
        body = form([BOMB] * images)
        self.many(8, lambda number: self.post(body, number))

    def image_bomb(self):
        self.many(16, lambda number: self.post(BOMB, number, "image/png"))

    def scan_bomb(self, body):
        self.many(16, lambda number: self.post(body, number, "image/jpeg"))

    def held_bodies(self):
        """From three addresses all of large bodies but their end, again as soon as they are refused."""
        body = request(bytes(16 << 20))[:-100]
        def work(number):
            client = self.connect(2 + number % 3)
            client.settimeout(60)
            try:
                client.sendall(body)
                client.recv(100)
            finally:
                client.close()
        self.many(30, work)

    def idle(self, addresses):
        while time.monotonic() < self.end:
            for number in range(2000):
                try:
                    self.connect(2 + number % addresses)
                except OSError:
                    pass
            time.sleep(1)
            for client in self.sockets[:-2000]:
                client.close()
            self.sockets = self.sockets[-2000:]

    def close(self):
        for client in self.sockets:
            client.close()


ATTACKS = {
    "nothing": lambda attacker: time.sleep(max(0, attacker.end - time.monotonic())),
    "130 slow heads": Attacker.slow_head,
    "130 slow bodies": Attacker.slow_body,
    "55 slow readers": Attacker.slow_read,
    "16 x 10,000 parts": Attacker.many_parts,
    # As many as a request may have, and as many pixels.
    "8 forms of 32 x 49 MP": lambda attacker: attacker.form_bomb(32),
    "8 forms of 4 x 49 MP": lambda attacker: attacker.form_bomb(4),
    "16 images of 49 MP": Attacker.image_bomb,
    "16 JPEGs of 20,000 scans": lambda attacker: attacker.scan_bomb(MANY_SCANS),
    "16 JPEGs of 100 scans": lambda attacker: attacker.scan_bomb(MOST_SCANS),
    "30 bodies of 16 MB, held": Attacker.held_bodies,
    "2,000 idle, 1 address": lambda attacker: attacker.idle(1),
    "2,000 idle, 20 addresses": lambda attacker: attacker.idle(20),
}


def stop_under_load(service, seconds):
    """SIGTERM while requests come and 130 bodies are slow: those in work are answered, then it ends."""
    attacker = Attacker(service.port, seconds)
    threading.Thread(target=attacker.slow_body, daemon=True).start()
    honest = Honest(service)
    honest.start()
    time.sleep(seconds / 2)
    start = time.monotonic()
    service.process.send_signal(signal.SIGTERM)
    status = service.process.wait(120)
    honest.over = True
    return status, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("default")
    parser.add_argument("encoder", nargs="?")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--timeout", type=float, default=30, help="that of the service: nobody may wait longer")
    arguments, flags = parser.parse_known_args()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    flags = [flag for flag in flags if flag != "--"] + [f"--timeout={arguments.timeout}"]
    service = Service(arguments.program, arguments.encoder or arguments.default, flags)
    print(f"| {'attack':24} | served meanwhile | longest wait | health | memory before, most, after (MB) |")
    print("|---|---:|---:|---|---:|")
    failed = False
    for name, attack in ATTACKS.items():
        before = service.memory()
        service.forget_peak()
        attacker, honest = Attacker(service.port, arguments.seconds), Honest(service)
        honest.start()
        attack(attacker)
        honest.over = True
        honest.join(130)
        attacker.close()
        time.sleep(1)
        failed |= honest.gap > arguments.timeout or honest.served == 0
        health = "ok" if honest.unhealthy == 0 else f"{honest.unhealthy} x not"
        print(f"| {name:24} | {honest.served} of {honest.sent} | {honest.gap:.2f} s | {health} | "
              f"{before:.0f}, {service.memory('VmHWM'):.0f}, {service.memory():.0f} |", flush=True)
    status, seconds = stop_under_load(service, arguments.seconds)
    print(f"| SIGTERM under load | | ended after {seconds:.1f} s with {status} | | |")
    if status != 0 or failed:
        sys.exit("the attacks kept others out, or the service did not end well:\n" + "".join(service.log[-20:]))


main()
