"""The agent starts from a folder in which nobody else can put another in its place."""

import errno
import getpass
import os
import subprocess
import sys

import pytest

from backends.agent import bootstrap

SOMEBODY = 12345


def unsafe(folder):
    return bootstrap.unsafe(str(folder), os.environ["HOME"])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache folder below one that has nothing to do with the home."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "shared" / "cache" / "planner"
    folder.mkdir(parents=True)
    return folder


def test_a_folder_of_this_user_is_safe(folder):
    assert unsafe(folder) == ""


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_neither_it_nor_what_it_is_in_may_be_written_by_others(folder, levels):
    place = [folder, *folder.parents][levels]
    place.chmod(0o757)
    assert unsafe(folder) == f"other users may write to {place}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("levels", [0, 1, 2])
def test_neither_it_nor_what_it_is_in_may_belong_to_somebody_else(folder, levels):
    place = [folder, *folder.parents][levels]
    os.chown(place, SOMEBODY, SOMEBODY)
    assert unsafe(folder) == f"{place} belongs to user {SOMEBODY}"


def test_a_folder_whose_entries_only_their_owners_move_may_hold_it_but_be_none(folder):
    folder.parent.chmod(0o1777)
    assert unsafe(folder) == ""
    folder.chmod(0o1777)
    assert unsafe(folder) == f"other users may write to {folder}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_link_of_somebody_else_is_none_of_this_users_folders(folder):
    link = folder.parent.parent / "link"
    link.symlink_to(folder)
    assert unsafe(link) == ""
    os.chown(link, SOMEBODY, SOMEBODY, follow_symlinks=False)
    assert unsafe(link) == f"{link} belongs to user {SOMEBODY}"


def test_what_a_link_leads_to_is_judged_too(folder):
    link = folder.parent / "link"
    link.symlink_to(folder)
    folder.chmod(0o777)
    assert unsafe(link) == f"other users may write to {folder}"


def test_the_home_is_judged_and_nothing_above_it(folder, monkeypatch):
    folder.parent.parent.chmod(0o777)
    monkeypatch.setenv("HOME", str(folder.parent))
    assert unsafe(folder) == ""
    folder.parent.chmod(0o777)
    assert unsafe(folder) == f"other users may write to {folder.parent}"


def test_without_a_home_all_is_judged(folder, monkeypatch):
    folder.parent.parent.chmod(0o777)
    monkeypatch.setenv("HOME", "~")
    assert unsafe(folder) == f"other users may write to {folder.parent.parent}"


@pytest.mark.parametrize(
    ("group", "members", "private"), [("me", [], True), ("me", ["me", "you"], False), ("us", [], False)]
)
def test_a_group_of_this_user_alone_may_write(folder, monkeypatch, group, members, private):
    import grp
    import pwd

    monkeypatch.setattr(pwd, "getpwuid", lambda number: pwd.struct_passwd(("me", "x", 0, 0, "", "/", "/bin/sh")))
    monkeypatch.setattr(grp, "getgrgid", lambda number: grp.struct_group((group, "x", 0, members)))
    folder.chmod(0o770)
    assert (unsafe(folder) == "") == private


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_is_not_the_agent(tmp_path, make):
    path = str(tmp_path / "agent.pyz")
    make(path)
    assert not bootstrap.is_whole(path, "0" * 64)


def test_nothing_of_ours_is_imported():
    """Its source starts where no other file of the planner is."""
    with open(bootstrap.__file__) as stream:
        source = stream.read() + "\nmain('0' * 64, 1, {})"
    done = subprocess.run(
        [sys.executable, "-I", "-c", source],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={"XDG_CACHE_HOME": "/dev/null"},
    )
    assert done.stdout.startswith(b"planner:fail ")


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """A user of whom the system knows nothing, as in a container that runs as a number."""

    def unknown(_):
        raise KeyError

    for name in ("HOME", "XDG_CACHE_HOME", "LOGNAME", "USER"):
        monkeypatch.setenv(name, "")  # put back at the end, whatever the bootstrap sets
        monkeypatch.delenv(name)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_user_without_a_home_and_a_name_is_given_both(stranger):
    bootstrap.settle()
    folder = str(stranger / f"planner-{os.geteuid()}")
    assert (os.environ["XDG_CACHE_HOME"], os.environ["HOME"]) == (folder, folder)
    assert getpass.getuser() == f"user-{os.getuid()}"
    assert bootstrap.closed_folder("~") == os.path.join(folder, "planner")


def test_programs_of_homebrew_are_found_behind_all_others(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(bootstrap, "PROGRAMS", ("/bin", str(tmp_path), str(tmp_path / "missing")))
    bootstrap.find_programs()
    assert os.environ["PATH"] == f"/usr/bin:/bin:{tmp_path}"


def test_a_device_without_any_folder_for_it_is_named(stranger, monkeypatch, capfd):
    def none_usable():
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr("tempfile.gettempdir", none_usable)
        bootstrap.main("digest", 1, {})
    assert capfd.readouterr().out == "planner:fail [Errno 2] No usable temporary directory found\n"


@pytest.mark.parametrize(("umask", "left"), [(0, 0), (0o777, 0o077), (0o022, 0o022)])
def test_whatever_the_umask_folders_are_of_use_to_this_user_alone(tmp_path, monkeypatch, umask, left):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before = os.umask(umask)
    try:
        folder = bootstrap.closed_folder("~")
    finally:
        assert os.umask(before) == left
    for made in (folder, tmp_path / "cache"):
        assert os.stat(made).st_mode & 0o777 == 0o700


@pytest.mark.parametrize("told", ["relative", "~", ""])
def test_a_cache_that_is_no_whole_path_does_not_count(stranger, monkeypatch, told):
    monkeypatch.setenv("HOME", str(stranger))
    monkeypatch.setenv("XDG_CACHE_HOME", told)
    assert bootstrap.cache_home() == str(stranger / ".cache")
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert bootstrap.cache_home() == "/elsewhere"


def test_a_home_that_is_not_there_is_not_made(stranger, monkeypatch):
    monkeypatch.setenv("HOME", str(stranger / "nonexistent"))
    assert bootstrap.cache_home() == str(stranger / f"planner-{os.geteuid()}")
