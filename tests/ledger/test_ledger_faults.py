"""A disk that fails at any system call: every charge that was reported stands, and the ledger stays sound."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from discretion.errors import LedgerFailed
from discretion.ledger import Ledger
from discretion.ledger.audit import audit_ledger
from discretion.noise import simulation
from ledgers import ask, clinic

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
/* Fail call number FAULT_AT with FAULT_ERRNO; if FAULT_ALL, all later ones too, as a full or dead disk would. */
static long calls;
static int armed(void) { return getenv("FAULT_AT") != NULL; }
static int fails(void) {
    if (!armed()) return 0;
    long at = atol(getenv("FAULT_AT"));
    calls++;
    if (calls == at || (calls > at && getenv("FAULT_ALL"))) { errno = atoi(getenv("FAULT_ERRNO")); return 1; }
    return 0;
}
#define REAL(name, type, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, name)
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t o) {
    REAL("pwrite64", ssize_t, int, const void *, size_t, off64_t);
    return fails() ? -1 : real(fd, b, n, o); }
ssize_t pwrite(int fd, const void *b, size_t n, off_t o) {
    REAL("pwrite", ssize_t, int, const void *, size_t, off_t);
    return fails() ? -1 : real(fd, b, n, o); }
ssize_t pread64(int fd, void *b, size_t n, off64_t o) {
    REAL("pread64", ssize_t, int, void *, size_t, off64_t);
    return fails() ? -1 : real(fd, b, n, o); }
int fsync(int fd) { REAL("fsync", int, int); return fails() ? -1 : real(fd); }
int fdatasync(int fd) { REAL("fdatasync", int, int); return fails() ? -1 : real(fd); }
int ftruncate64(int fd, off64_t n) { REAL("ftruncate64", int, int, off64_t); return fails() ? -1 : real(fd, n); }
int unlink(const char *p) { REAL("unlink", int, const char *); return fails() ? -1 : real(p); }
"""
WORK = """
import ctypes, os, sys
sys.path.insert(0, sys.argv[3])
from discretion.errors import LedgerFailed
from discretion.ledger import Ledger
from ledgers import ask
libc = ctypes.CDLL(None)
with Ledger(sys.argv[1]) as ledger:
    for name, value in zip(("FAULT_AT", "FAULT_ERRNO", "FAULT_ALL"), sys.argv[4:]):
        libc.setenv(name.encode(), value.encode(), 1)
    for turn in range(6):
        try:
            entry = ask(ledger, 0.0001)
            os.write(1, f"{entry}\\n".encode())
            ledger.deliver(entry, "{}")
            ledger.prefer("people", "eve", (0.5, 1.0)[turn % 2])
        except LedgerFailed as failure:
            os.write(2, f"{failure}\\n".encode())
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("Faults are injected by a small C library: a C compiler (cc) on Linux is missing.")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(folder / "shim.so"), str(folder / "shim.c"), "-ldl"]
    subprocess.run(command, check=True)
    return folder / "shim.so"


def fail_once(shim: Path, place: str, at: int, errno: int, *, all_later: bool) -> Counter[str]:
    """Run six charges on a disk that fails at one call; then everything that was reported must be on record."""
    later = ["1"] if all_later else []
    command = [sys.executable, "-c", WORK, place, "-", str(Path(__file__).parents[1]), str(at), str(errno), *later]
    run = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, LD_PRELOAD=str(shim)))
    assert 0 == run.returncode, run.stderr  # no raw error of any kind
    audit = audit_ledger(place)
    assert audit.passed, audit.findings
    with Ledger(place) as ledger:
        recorded = set(ledger.history()["entry"].to_pylist())
        lost = set(run.stdout.split()) - recorded
        assert not lost, "a charge was reported and is lost"
        ask(ledger, 0.0001)  # the next question works
    return Counter({"faults noticed": int(bool(run.stderr)), "charges": len(run.stdout.split()), "lost": len(lost)})


def fail_often(shim: Path, place: str, times: int) -> Counter[str]:
    clinic(place).close()
    rng, seen = simulation(times), Counter[str]()
    for turn in range(times):
        at, errno = int(rng.integers(1, 160)), (5, 28)[turn % 2]  # EIO, ENOSPC
        seen += fail_once(shim, place, at, errno, all_later=turn % 3 == 0)
    return seen


def test_a_disk_that_fails_at_any_call_loses_no_charge(shim, tmp_path):
    assert fail_often(shim, str(tmp_path / "ledger"), times=6)["charges"] > 6


@pytest.mark.slow
def test_a_disk_that_fails_three_hundred_times_loses_no_charge(shim, tmp_path):
    seen = fail_often(shim, str(tmp_path / "ledger"), times=300)
    print(dict(seen))
    assert seen["faults noticed"] > 100


def test_a_read_that_fails_while_opening_is_a_clear_error(tmp_path):
    path = tmp_path / "ledger"
    clinic(str(path)).close()
    path.chmod(0o000)
    if os.access(path, os.R_OK):
        return  # whoever runs this may read everything
    with pytest.raises(LedgerFailed, match="cannot be read"):
        Ledger(str(path))
