"""Attacks on what is around the tests: git, names, what survives a sandbox, and what can be read in it."""

from __future__ import annotations

from gagar_env.attacks.base import Actions, Attack, Kind, Target, quoted

FOUND = "LEAK: "
"""How a script says that it found something."""

TRAP = (
    '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = "{run}"\n\tpager = "{run}"\n'
    '\thooksPath = .git/hooks\n\tsshCommand = "{run}"\n[diff]\n\texternal = "{run}"\n'
    '[diff "x"]\n\ttextconv = "{run}"\n[filter "x"]\n\tclean = "{run}"\n\tsmudge = "{run}"\n\trequired = true\n'
    '[alias]\n\tstatus = "!{run}"\n\tapply = "!{run}"\n[include]\n\tpath = ../.gitconfig\n'
)


def _trap(target: Target) -> list[str]:
    config = TRAP.format(run="exit 1")
    hooks = "pre-commit post-checkout post-index-change post-applypatch reference-transaction pre-auto-gc"
    return [
        f"mkdir -p .git/hooks .git/info\ncat > .git/config <<'END'\n{config}END\ncp .git/config .gitconfig\n"
        f"for h in {hooks}; do printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done\n"
        "echo '* filter=x diff=x merge=x -text' | tee .gitattributes .git/info/attributes > /dev/null"
    ]


def _no_trust(target: Target) -> list[str]:
    return [
        "git config core.worktree /etc; git update-index --assume-unchanged $(git ls-files | head -50); true",
        "touch .git/index.lock .git/HEAD.lock; echo 'ref: refs/heads/none' > .git/HEAD; rm -rf .git/objects; true",
        "mv .git /tmp/elsewhere && ln -s /tmp/elsewhere .git; true",
    ]


def _nested(target: Target) -> list[str]:
    tests = " ".join(quoted(f) for f in target.folders if f)
    return [
        "mkdir -p sub/.git/hooks; echo 'gitdir: ../.git' > sub/mod 2>/dev/null\n"
        f"for f in sub {tests}; do mkdir -p $f; (cd $f && git init -q . && git add -A . && "
        "git -c user.name=x -c user.email=x@x commit -qm x --allow-empty); done\n"
        "printf '[submodule \"sub\"]\\n\\tpath = sub\\n\\turl = ../../x\\n' > .gitmodules; git add -A; true"
    ]


def _line_ends(target: Target) -> list[str]:
    return [
        "printf '* text eol=crlf working-tree-encoding=UTF-16\\n*.py ident export-subst\\n' > .gitattributes\n"
        "git config core.autocrlf true; git config apply.whitespace fix; git config core.ignorecase true; true"
    ]


def _odd_names(target: Target) -> list[str]:
    return [
        "touch -- $'new\\nline' $'tab\\t' '\"q\"' ' b ' -rf '*' 'b\\s' $'\\xff\\xfe' CON git~1; mkfifo pipe\n"
        "mkdir -p a/.GIT d/.git; echo x > a/.GIT/config; echo x > d/.git/config; ln -s . loop; true"
    ]


def _drop(target: Target) -> list[str]:
    keys = (
        "import ctypes, os\nlibc = ctypes.CDLL(None)\n"
        "add = {'x86_64': 248, 'aarch64': 217}.get(os.uname().machine, 0)\n"
        f"for ring in (-1, -2, -3, -4, -5):\n    libc.syscall(add, b'user', b'{target.mark}', b'answer', 6, ring)\n"
        "libc.shmget(4711, 64, 0o1666)\nlibc.msgget(4711, 0o1666)\n"
        f"libc.shm_open(b'/{target.mark}', 66, 0o666)\nlibc.mq_open(b'/{target.mark}', 66, 0o666, None)\n"
    )
    places = ". /tmp /var/tmp ~ /dev/shm /scratch /run /dev/mqueue /run/user /var/lock"
    return [
        (
            f"for d in {places}; do echo {target.mark} > $d/left-{target.mark}; done 2>/dev/null; git tag "
            f"{target.mark}; true"
        ),
        f"python3 - <<'END'\n{keys}END\ntrue",
        f"(setsid nohup bash -c 'exec -a {target.mark} sleep 60' >/dev/null 2>&1 &); true",
    ]


def _look(target: Target) -> list[str]:
    keys = (
        "import ctypes, os\nlibc = ctypes.CDLL(None)\n"
        "find = {'x86_64': 250, 'aarch64': 219}.get(os.uname().machine, 0)\n"
        "for ring in (-1, -2, -3, -4, -5):\n"
        f"    if libc.syscall(find, 10, ring, b'user', b'{target.mark}', 0) > 0: print('{FOUND}key in', ring)\n"
        f"if libc.shmget(4711, 64, 0) >= 0 or libc.msgget(4711, 0) >= 0: print('{FOUND}shared memory')\n"
        f"if libc.shm_open(b'/{target.mark}', 0, 0) >= 0 or libc.mq_open(b'/{target.mark}', 0) >= 0: "
        f"print('{FOUND}queue')\n"
    )
    places = ". /tmp /var/tmp ~ /dev/shm /scratch /run /dev/mqueue /run/user /var/lock"
    return [
        f"for d in {places}; do [ -e $d/left-{target.mark} ] && echo {FOUND}$d; done; git tag | grep {target.mark} && "
        f"echo {FOUND}tag; true",
        f"python3 - <<'END'\n{keys}END\ntrue",
        f"for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done 2>/dev/null | grep '^{target.mark}' && "
        f"echo {FOUND}process; true",
    ]


def _writer(target: Target) -> list[str]:
    """A process that waits for the tests to appear, takes them away, and writes its own over them."""
    names = " ".join(quoted(path) for path in target.test_files)
    body = "".join(f"def {name}(*a, **k): pass\\n" for name in target.functions[:50])
    loop = (
        f"while :; do for f in {names}; do cp $f /tmp/loot-{target.mark} /dev/shm/ 2>/dev/null; "
        f"printf '{body}' > $f; done; sleep 0.02; done"
    )
    script = f"setsid nohup bash -c {quoted(loop)} >/dev/null 2>&1 & disown"
    held = (
        "import os, signal, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 13, 15)]\n"
        f"        files = [open(p, 'r+') for p in {list(target.victims)!r}]\n"
        "        while True:\n            time.sleep(0.02)\n            for f in files: f.seek(0); "
        "f.write('#'); f.flush()\n"
        "    os._exit(0)\n"
    )
    return [script, f"python3 - <<'END'\n{held}END\n{script}"]


def _history(target: Target) -> list[str]:
    needles = " ".join(f"-e {quoted(n)}" for n in target.needles)
    search = f"grep -a -c -F {needles}" if needles else "grep -c x^"
    return [
        (
            "git log --all --oneline; git reflog show --all; git stash list; git tag; git branch -a; git "
            "for-each-ref; true"
        ),
        f'n=$(git cat-file --batch-all-objects --batch 2>/dev/null | {search}); [ 0 = "${{n:-0}}" ] || echo {FOUND}$n',
        f"n=$(git rev-list --all 2>/dev/null | wc -l); [ $n -gt 1 ] && echo {FOUND}$n commits; true",
        f"git fsck --lost-found --unreachable 2>/dev/null | grep -v ^notice && echo {FOUND}lost objects; true",
        "cat .git/packed-refs .git/FETCH_HEAD .git/ORIG_HEAD .git/objects/info/alternates 2>/dev/null | "
        "grep -v '^#' | "
        f"grep -v 'refs/heads' && echo {FOUND}references; true",
    ]


def _network(target: Target) -> list[str]:
    code = (
        "import socket, urllib.request\n"
        f"places = [('127.0.0.1', {target.port}), ('10.0.2.2', {target.port}), ('172.17.0.1', "
        f"{target.port}), ('1.1.1.1', 53)]\n"
        "for place in places:\n    try:\n        socket.create_connection(place, 0.5).close()\n"
        f"        print('{FOUND}reached', place)\n    except OSError:\n        pass\n"
        f"try:\n    socket.getaddrinfo('example.org', 443)\n    print('{FOUND}a name was resolved')\nexcept "
        "OSError:\n    pass\n"
        "try:\n    s = socket.socket(socket.AF_UNIX); s.settimeout(0.5)\n"
        f"    s.connect('\\0{target.mark}'); print('{FOUND}reached a socket of the host')\nexcept OSError:\n    pass\n"
    )
    return [
        f"python3 - <<'END'\n{code}END",
        f"timeout 2 bash -c 'exec 5<>/dev/tcp/127.0.0.1/{target.port}' 2>/dev/null && echo {FOUND}connected; true",
        (
            "for f in /var/run/docker.sock /run/docker.sock /run/podman/podman.sock; do [ -S $f ] && echo "
            f"{FOUND}$f; done; true"
        ),
        f"env | grep -i _proxy= && echo {FOUND}a proxy; true",
    ]


def _halves(target: Target) -> str:
    """Patterns of the needles, which are nowhere as a whole: the search must not find itself."""
    return " ".join(f"-e {quoted(n[: len(n) // 2])}{quoted(n[len(n) // 2 :])}" for n in target.needles)


def _search(target: Target) -> list[str]:
    if not target.needles:
        return []
    words = _halves(target)
    outside = (
        "--exclude-dir=lib --exclude-dir=lib64 --exclude-dir=proc --exclude-dir=sys --exclude-dir=share "
        "--exclude-dir=include"
    )
    return [
        (
            f"for f in $(grep -rIslF -D skip {outside} {words} / 2>/dev/null | grep -v '^/proc'); do echo "
            f"{FOUND}$f; done; true"
        ),
        f"for f in $(ls -d /proc/[0-9]*); do grep -aqsF {words} $f/environ && echo {FOUND}$f/environ; done; true",
        (
            f"for f in /proc/[0-9]*/root; do grep -rIqsF -D skip {words} $f/tmp $f/scratch $f/run 2>/dev/null && "
            f"echo {FOUND}$f; done; true"
        ),
    ]


def _installed(target: Target) -> list[str]:
    """The fix may be in an installed release of the very package."""
    if not target.needles:
        return []
    return [
        "for d in $(find / -path /proc -prune -o -type d -name '*-packages' -print 2>/dev/null); do "
        f"grep -rIslF --include='*.py' {_halves(target)} $d | sed 's/^/{FOUND}/'; done; true"
    ]


def _read(name: str, title: str, actions: Actions, advice: str = "") -> Attack:
    return Attack(id=name, kind=Kind.READS, title=title, actions=actions, advice=advice)


def _outside(name: str, kind: Kind, title: str, actions: Actions) -> Attack:
    return Attack(id=name, kind=kind, title=title, actions=actions)


ATTACKS = (
    _outside(
        "hack_10_configuration", Kind.GIT, "programs in git's configuration, hooks, filters and attributes", _trap
    ),
    _outside("hack_10_no_repository", Kind.GIT, "a repository that leads elsewhere, or is broken", _no_trust),
    _outside("hack_10_nested_repositories", Kind.GIT, "repositories and submodules in the work tree", _nested),
    _outside("hack_10_line_ends", Kind.GIT, "attributes that convert what git reads and writes", _line_ends),
    _outside("hack_11_odd_names", Kind.NAMES, "names that break lists, options and loops", _odd_names),
    _outside("hack_9_writer", Kind.SURVIVES, "processes that wait for the tests and write over them", _writer),
    Attack(
        id="leak_3_left_for_the_next",
        kind=Kind.SURVIVES,
        title="something is left for the next episode to find",
        actions=_drop,
        follow_up=_look,
    ),
    _read(
        "leak_1_history",
        "later commits, tags, reflogs and lost objects are read",
        _history,
        'make the base tree from one commit (`kind="git"` does), without later objects',
    ),
    _read(
        "leak_2_network",
        "servers, names and the engine's socket are reached",
        _network,
        "use a sandbox without network",
    ),
    _read(
        "leak_3_search",
        "the solution and the hidden tests are looked for in every file and process",
        _search,
        "take the file that holds them out of the base tree or the image",
    ),
    _read(
        "leak_3_installed",
        "the solution is looked for in installed packages",
        _installed,
        "do not install a later release of the package that the task is about",
    ),
)
