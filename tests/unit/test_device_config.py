from pathlib import Path

import pytest

from edgekit.device import config
from edgekit.device.config import Config
from edgekit.errors import UsageError


def load(folder: Path, text: str) -> Config:
    path = folder / "config.toml"
    path.write_text(text)
    return config.load(path)


def test_what_is_left_out_has_a_default(tmp_path: Path) -> None:
    assert load(tmp_path, "") == Config()
    found = load(tmp_path, "[session]\nthreads = 2\ncores = [0, 1]\n[server]\nrun_seconds = 5\n")
    assert (found.session.threads, found.session.cores, found.server.run_seconds) == (2, (0, 1), 5.0)
    assert found.server.port == Config().server.port


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[session]\nthread = 2", "unknown key 'session.thread'. Did you mean 'threads'"),
        ("[servr]\n", "unknown key 'servr'. Did you mean 'server'"),
        ("[session]\nthreads = '2'", "'session.threads' must be a whole number, not \"2\""),
        ("[session]\nthreads = true", "'session.threads' must be a whole number, not true"),
        ("[session]\nthreads = -1", "0 to 256"),
        ("[session]\ncores = [-1]", "below 0"),
        ("[session]\noptimization = 'al'", "is 'al'. Did you mean 'all'"),
        ("[server]\nport = 70000", "no port"),
        ("[server]\nrunning = 0", "'server.running' must be more than 0"),
        ("[server]\nrequest_seconds = -1.0", "'server.request_seconds'"),
        ("[server]\nwaiting = -1", "'server.waiting'"),
        ("[server]\nrun_seconds = nan", "'server.run_seconds' must be more than 0 and at most 86400"),
        ("[server]\nrequest_seconds = inf", "'server.request_seconds'"),
        ("[server]\nrequest_bytes = 99999999999999999999999", "'server.request_bytes'"),
        ("[server\n", "not valid TOML"),
        ("[server]\nhost = ''", "'server.host' is no address: \"\""),
        ('[server]\nhost = "a\\u0000b"', "'server.host' is no address"),
        ('[server]\nhost = "ünï..x"', "'server.host' is no address"),
        ("[server]\nnames = ['a.example', '*']", "'server.names' holds \"*\", which is no name"),
        ("x = " + "[" * 100_000, "nested too deeply"),
        ("\udcff", "not valid TOML"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UsageError) as caught:
        config.load(path)
    assert message in caught.value.message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone\.toml cannot be read"):
        config.load(tmp_path / "gone.toml")
