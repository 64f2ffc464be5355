import hashlib
import io
import random
import tarfile
import zipfile
from pathlib import Path

import pytest

from gagar_env.bases import check_history, prepare_base
from gagar_env.cache import cache_root
from gagar_env.errors import TaskError
from gagar_env.tasks.task import RepoSource

pytestmark = pytest.mark.usefixtures("own_cache")


def tar_of(path: Path, *members: tuple[str, bytes, dict[str, object]]) -> RepoSource:
    with tarfile.open(path, "w:gz") as archive:
        for name, data, more in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for field, value in more.items():
                setattr(info, field, value)
            archive.addfile(info, io.BytesIO(data))
    return RepoSource(kind="archive", path=path)


LINK, HARD = tarfile.SYMTYPE, tarfile.LNKTYPE


def test_archive_loses_its_top_folder(task_of, contents, tmp_path: Path) -> None:
    repo = tar_of(
        tmp_path / "p-1.tar.gz",
        ("./p-1/", b"", {"type": tarfile.DIRTYPE}),
        ("p-1/empty/", b"", {"type": tarfile.DIRTYPE}),
        ("p-1/a.py", b"x\n", {"mode": 0o600}),
        ("p-1/b.sh", b"y\n", {"mode": 0o755}),
        ("p-1/c.py", b"", {"type": LINK, "linkname": "a.py"}),
        ("p-1/d.py", b"", {"type": HARD, "linkname": "p-1/a.py"}),
        ("p-1/.git/config", b"[evil]", {}),
        ("p-1/__pycache__/a.pyc", b"z", {}),
    )
    digest = hashlib.sha256(repo.path.read_bytes()).hexdigest()
    base = prepare_base(task_of(repo.model_copy(update={"sha256": digest})))
    assert contents(base.tree) == {
        "a.py": ("file", b"x\n"),
        "b.sh": ("program", b"y\n"),
        "c.py": ("link", b"a.py"),
        "d.py": ("file", b"x\n"),
    }
    check_history(base.tree)


def test_zip_archive(task_of, contents, tmp_path: Path) -> None:
    path = tmp_path / "p.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("p-1/a.py", "x\n")
        link = zipfile.ZipInfo("p-1/l")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "a.py")
    base = prepare_base(task_of(RepoSource(kind="archive", path=path)))
    assert contents(base.tree) == {"a.py": ("file", b"x\n"), "l": ("link", b"a.py")}


def test_wrong_checksum(task_of, tmp_path: Path) -> None:
    repo = tar_of(tmp_path / "p.tar.gz", ("p/a", b"x", {}))
    with pytest.raises(TaskError, match=r"repo of the-task: p\.tar\.gz has the sha256 .*, not 0000"):
        prepare_base(task_of(repo.model_copy(update={"sha256": "0" * 64})))


@pytest.mark.parametrize(
    "members",
    [
        [("p/../../evil", b"x", {})],
        [("/evil", b"x", {})],
        [("p/l", b"", {"type": LINK, "linkname": "../.."}), ("p/l/evil", b"x", {})],
        [("p/l", b"", {"type": LINK, "linkname": "/etc"})],
        [("p/l", b"", {"type": LINK, "linkname": "a/../../../x"})],
        [("p/h", b"", {"type": HARD, "linkname": "/etc/passwd"})],
        [("p/dev", b"", {"type": tarfile.CHRTYPE})],
        [("p/a", b"x", {}), ("p/a/b", b"x", {})],
    ],
)
def test_hack_11_archive_members_outside_are_refused(task_of, tmp_path: Path, members) -> None:
    repo = tar_of(tmp_path / "p.tar.gz", *members)
    before = {p for p in tmp_path.iterdir() if p.name != "cache"}
    with pytest.raises(TaskError, match="the-task"):
        prepare_base(task_of(repo))
    assert {p for p in tmp_path.iterdir() if p.name != "cache"} == before
    assert not list((cache_root() / "bases").glob("*/tree"))


@pytest.mark.parametrize("fault", ["damaged at once", "damaged later", "encrypted"])
def test_archive_that_cannot_be_unpacked_is_one_clear_line(task_of, tmp_path: Path, fault: str) -> None:
    if fault.startswith("damaged"):
        repo = tar_of(tmp_path / "p.tar.gz", ("p/a", random.Random(0).randbytes(50_000), {}))
        data = bytearray(repo.path.read_bytes())
        start = 100 if fault == "damaged at once" else 20_000
        data[start:49_000] = bytes([0xFF]) * (49_000 - start)
    else:
        repo = RepoSource(kind="archive", path=tmp_path / "p.zip")
        with zipfile.ZipFile(repo.path, "w") as archive:
            archive.writestr("p/a", "x")
        data = bytearray(repo.path.read_bytes())
        for sign, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            data[data.index(sign) + flags] |= 1
    repo.path.write_bytes(data)
    with pytest.raises(TaskError, match=r"repo of the-task: p\.\S+ cannot be unpacked") as caught:
        prepare_base(task_of(repo))
    assert "\n" not in str(caught.value)


def test_file_that_is_no_archive(task_of, tmp_path: Path) -> None:
    (tmp_path / "p.tar.gz").write_bytes(b"not an archive")
    with pytest.raises(TaskError, match="cannot be unpacked"):
        prepare_base(task_of(RepoSource(kind="archive", path=tmp_path / "p.tar.gz")))


@pytest.mark.parametrize("ending", ["tar", "zip"])
def test_a_link_below_a_link_is_not_made(task_of, tmp_path: Path, ending: str) -> None:
    """The second would come to stand wherever the first one leads to, on this machine."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine\n")
    links = (("p/a", str(outside)), ("p/a/mine", "/dev/null"), ("p/a/new", "/dev/null"))
    repo = RepoSource(kind="archive", path=tmp_path / "p.zip")
    if ending == "tar":
        repo = tar_of(tmp_path / "p.tar", *((name, b"", {"type": LINK, "linkname": to}) for name, to in links))
    else:
        with zipfile.ZipFile(repo.path, "w") as archive:
            for name, to in links:
                link = zipfile.ZipInfo(name)
                link.external_attr = 0o120777 << 16
                archive.writestr(link, to)
    with pytest.raises(TaskError, match=r"member 'p/a/mine' cannot be unpacked: what is above it is a link"):
        prepare_base(task_of(repo))
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("mine", "mine\n")]


def test_hard_links_count_as_what_they_bring(task_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gagar_env.repoarchives._MAX_BYTES", 5000)
    more = [(f"p/{number}", b"", {"type": HARD, "linkname": "p/a"}) for number in range(5)]
    repo = tar_of(tmp_path / "p.tar", ("p/a", bytes(1000), {}), *more)
    with pytest.raises(TaskError, match="the archive holds more than"):
        prepare_base(task_of(repo))
