"""Users of an image."""

import pytest

from gagar_env.errors import TaskError
from gagar_env.images.accounts import Account, resolve_user, with_agent
from gagar_env.sandbox.base import SANDBOX_UID

PASSWD = b"root:x:0:0:root:/root:/bin/sh\n# a comment\n+::::::\nbob:x:1001:1002::/home/bob:/bin/sh\n"
GROUP = b"root:x:0:\nbuild:x:1003:bob\n"


@pytest.mark.parametrize(
    ("user", "account"),
    [
        ("", (SANDBOX_UID, SANDBOX_UID)),
        ("root", (0, 0)),
        ("bob", (1001, 1002)),
        ("1001", (1001, 1002)),
        ("4321", (4321, 0)),
        ("bob:build", (1001, 1003)),
        ("4321:77", (4321, 77)),
    ],
)
def test_users_as_an_engine_reads_them(user, account):
    assert resolve_user(user, PASSWD, GROUP) == Account(*account)


def test_unknown_users():
    assert resolve_user("root", b"", b"") == Account(0, 0)
    with pytest.raises(TaskError, match=r"image\.user: x has no user 'eve'"):
        resolve_user("eve", PASSWD, GROUP, image="x")
    with pytest.raises(TaskError, match="has no group 'eve'"):
        resolve_user("bob:eve", PASSWD, GROUP)


def test_the_agent_is_added_where_it_is_not_there():
    passwd, group = with_agent(PASSWD.rstrip(b"\n"), GROUP)
    line = f"agent:x:{SANDBOX_UID}:{SANDBOX_UID}:agent:/home/agent:/bin/sh\n".encode()
    assert passwd == PASSWD + line
    assert group == GROUP + f"agent:x:{SANDBOX_UID}:\n".encode()
    assert with_agent(passwd, group) == (passwd, group)
    assert with_agent(b"", b"")[0].splitlines()[0].startswith(b"root:x:0:0:")
    assert b"\nagent60999:x:60999" in with_agent(b"agent:x:5:5::/:/bin/sh\n", b"")[0]
