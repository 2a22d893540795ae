# SPDX-License-Identifier: MIT
"""The connections of the command (command/link) to real servers: addresses, TLS, passwords, and answers that
come in slowly or not whole. `tickwheel top` shows the errors as a user sees them; link_talk sends any commands,
over links that wait and over links in a poll loop."""
import concurrent.futures
import contextlib
import json
import os
import random
import socket
import subprocess
import threading
from types import SimpleNamespace

import pytest

from harness import PATIENCE, ROOT, Broken, Fleet, free_port, wait_until
from test_work_command import Work

COMMAND = os.path.abspath(os.environ.get("TICKWHEEL_COMMAND") or os.path.join(ROOT, "build", "tickwheel"))
TALK = os.path.abspath(
    os.environ.get("TICKWHEEL_LINK_TALK") or os.path.join(os.path.dirname(COMMAND), "tests", "link_talk"))
SEED = int(os.environ.get("SEED", 20261123))
NOT_REDIS = "the process at this address is not a Redis server"


def bare_environment():
    names = ("TICKWHEEL_TOP_PASSWORD", "TICKWHEEL_TALK_PASSWORD", "REDISCLI_AUTH", "SSL_CERT_FILE",
             "SSL_CERT_DIR")
    return {**{name: value for name, value in os.environ.items() if name not in names}, "LC_ALL": "C.UTF-8"}


def run(program, *words, given="", env=None):
    return subprocess.run([program, *map(str, words)], input=given, capture_output=True, text=True,
                          timeout=PATIENCE, check=False, env={**bare_environment(), **(env or {})})


def top(address, *options, env=None):
    return run(COMMAND, "top", "--redis", address, "--json", "--interval", "100ms", *options, env=env)


def shows(address, *options, text=None, env=None):
    """`tickwheel top` reads the server; `text` is the address as it is shown."""
    done = top(address, *options, env=env)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert json.loads(done.stdout)["address"] == (text or address)


def refuses(address, *options, says, status=1, env=None):
    """`tickwheel top` fails with one line that holds `says`, and does not show the password."""
    done = top(address, *options, env=env)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (status, "", 1), done.stderr
    assert says in done.stderr and "SECRET" not in done.stderr, done.stderr


def talk(way, address, *commands, options=(), links=1, reply_max=0, env=None):
    """Sends the commands over each link. Returns the exit status and the lines of output."""
    done = run(TALK, way, links, reply_max, "--redis", address, *options,
               given="".join(f"{one}\n" for one in commands), env=env)
    assert done.stderr == "", done.stderr
    return done.returncode, done.stdout.splitlines()


REFUSED = {"wait": "", "poll": " (refused)"}  # link_open() returns no link that could be asked
both_ways = pytest.mark.parametrize("way", ["wait", "poll"])


# Certificates, which `openssl` makes once


def openssl(folder, *words):
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True, timeout=PATIENCE)


def certificate(folder, name, authority, hosts, *, days=2):
    """All certificates have the same key, so a server changes its certificate by one setting."""
    openssl(folder, "req", "-new", "-key", "key.pem", "-subj", f"/CN={name}", "-out", f"{name}.csr")
    with open(os.path.join(folder, f"{name}.ext"), "w", encoding="ascii") as file:
        file.write(f"subjectAltName={hosts}\n")
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey",
            f"{authority}-key.pem", "-CAcreateserial", "-days", str(days), "-extfile", f"{name}.ext", "-out",
            f"{name}.pem")


def make_certificates(folder):
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for name in ("ours", "theirs"):
        openssl(folder, "req", "-x509", *curve, "-keyout", f"{name}-key.pem", "-out", f"{name}.pem", "-days",
                "2", "-subj", f"/CN=the authority {name}")
    openssl(folder, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "key.pem")
    openssl(folder, "ec", "-in", "key.pem", "-aes128", "-passout", "pass:SECRET", "-out", "locked.pem")
    certificate(folder, "good", "ours", "DNS:localhost,IP:127.0.0.1,IP:::1")
    certificate(folder, "foreign", "theirs", "DNS:localhost,IP:127.0.0.1")
    certificate(folder, "elsewhere", "ours", "DNS:*.example,IP:127.0.0.2")
    certificate(folder, "expired", "ours", "DNS:localhost,IP:127.0.0.1", days=-1)
    certificate(folder, "client", "ours", "DNS:a.client")


@pytest.fixture(scope="module")
def net():
    """One server with a plain port, a port with TLS, and a Unix socket."""
    fleet = Fleet()
    try:
        yield start_net(fleet)
    finally:
        fleet.close()


def start_net(fleet):
    folder = os.path.join(fleet.folder, "certificates")
    os.mkdir(folder)
    make_certificates(folder)
    names = ("ours", "theirs", "good", "foreign", "elsewhere", "expired", "client", "key", "locked")
    files = SimpleNamespace(**{name: os.path.join(folder, f"{name}.pem") for name in names})
    path, port = os.path.join(fleet.folder, "socket"), free_port()
    server = fleet.server(start=False, unixsocket=path, bind="127.0.0.1 -::1", tls_port=port,
                          tls_cert_file=files.good, tls_key_file=files.key, tls_ca_cert_file=files.ours,
                          tls_auth_clients="no")
    try:
        server.start()
    except Broken:
        if "tls-port" in server.log():
            pytest.skip("this server is built without TLS")
        raise
    r = server.client()
    r.acl_setuser("worker", enabled=True, passwords=["+SECRET:/@%"], keys=["*"], commands=["+@all"])
    r.acl_setuser("poor", enabled=True, passwords=["+SECRET"], commands=["+info", "+tw.top"])
    return SimpleNamespace(server=server, r=r, files=files, path=path, trust=("--cacert", files.ours),
                           plain=f"redis://127.0.0.1:{server.port}", tls=f"rediss://localhost:{port}",
                           tls_port=port)


@contextlib.contextmanager
def setting(net, **values):
    """Settings of the server, for some time."""
    names = [name.replace("_", "-") for name in values]
    old = {name: net.r.config_get(name)[name] for name in names}
    try:
        for name, value in zip(names, values.values()):
            net.r.config_set(name, value)
        yield
    finally:
        for name, value in old.items():
            net.r.config_set(name, value)


# Addresses


def test_every_transport(net):
    shows(net.plain)
    shows(f"localhost:{net.server.port}")
    shows(f"unix:{net.path}")
    shows(f"unix://{net.path}")
    shows(net.tls, *net.trust)
    shows(f"rediss://127.0.0.1:{net.tls_port}", *net.trust)


def test_ipv6(net):
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.connect(("::1", net.server.port))
        except OSError:
            pytest.skip("this machine has no IPv6")
    shows(f"redis://[::1]:{net.server.port}")
    shows(f"[::1]:{net.server.port}")
    shows(f"rediss://[::1]:{net.tls_port}", *net.trust)


def test_the_authorities_of_the_system(net):
    shows(net.tls, env={"SSL_CERT_FILE": net.files.ours})
    refuses(net.tls, says="certificate is refused: ", env={"SSL_CERT_FILE": net.files.theirs})


@both_ways
def test_a_database(net, way):
    addresses = (f"{net.plain}/5", f"{net.plain}?db=6", f"unix:{net.path}?db=7", f"{net.tls}/8")
    for i, address in enumerate(addresses):
        options = net.trust if "rediss" in address else ()
        assert talk(way, address, f"SET here {i}", options=options) == (0, ["OK"])
        assert net.server.client(db=5 + i).get("here") == str(i)
    assert talk(way, net.plain, "GET here", options=("--db", "5")) == (0, ["0"])
    assert talk(way, f"{net.plain}/99", "PING") == (1, ["SELECT: ERR DB index is out of range" + REFUSED[way]])


@both_ways
def test_passwords_and_users(net, way):
    code = "SECRET%3a%2F%40%25"
    for address, options in ((f"redis://worker:{code}@127.0.0.1:{net.server.port}", ()),
                             (f"unix://worker:{code}@{net.path}", ()),
                             (f"rediss://worker:{code}@localhost:{net.tls_port}", net.trust)):
        assert talk(way, address, "ACL WHOAMI", options=options) == (0, ["worker"])
        shows(address, *options, text=address.replace(code, "***"))
    variable = {"TICKWHEEL_TALK_PASSWORD": "SECRET:/@%"}
    for address, options in ((net.plain, ("--user", "worker")),
                             (net.plain.replace("//", "//worker@"), ())):
        assert talk(way, address, "ACL WHOAMI", options=options, env=variable) == (0, ["worker"])
    for name in ("worker", "nobody"):
        found = talk(way, f"redis://{name}:SECRET@127.0.0.1:{net.server.port}/3", "SET never sent")
        assert found == (1, [f"the password of user {name} is wrong, or there is no such user" + REFUSED[way]])
    assert net.server.client(db=3).dbsize() == net.r.exists("never") == 0


def test_passwords_in_errors(net):
    port = net.server.port
    refuses(f"redis://worker:SECRET@127.0.0.1:{port}", says="the password of user worker is wrong")
    refuses(f"redis://worker:SECRET@127.0.0.1:{port}", says=f"redis://worker:***@127.0.0.1:{port}: ")
    refuses("redis://worker:SECRET@127.0.0.1:x", says='found "redis://worker:***@127.0.0.1:x"', status=2)
    refuses(f"redis://poor:SECRET@127.0.0.1:{port}/1", says="user poor has no permission for SELECT: NOPERM")
    with setting(net, requirepass="SECRET"):
        refuses(net.plain, says="the server needs a password: set TICKWHEEL_TOP_PASSWORD")
        shows(f"redis://:SECRET@127.0.0.1:{port}", text=f"redis://:***@127.0.0.1:{port}")
        shows(net.plain, env={"REDISCLI_AUTH": "SECRET"})
        refuses(f"{net.plain}/3", says="the server needs a password: set TICKWHEEL_TOP_PASSWORD")


def test_options_that_contradict_the_address(net):
    port = net.server.port
    refuses(f"redis://a:SECRET@127.0.0.1:{port}", "--user", "b", says="--user: the URL names a user", status=2)
    refuses(f"{net.plain}/1", "--db", "1", says="--db: the URL names a database already", status=2)
    refuses(f"redis://u@127.0.0.1:{port}", says="user u: set the password in TICKWHEEL_TOP_PASSWORD", status=2)
    for option in ("--cacert", "--cert", "--key"):
        refuses(net.plain, option, net.files.ours, says="are for TLS: expected --redis rediss://", status=2)
    for option in ("--cert", "--key"):
        refuses(net.tls, option, net.files.good, says="expected both --cert and --key, found one", status=2)
    long = {"TICKWHEEL_TOP_PASSWORD": "x" * 4097}
    refuses(net.plain, says="expected a password of at most 4096 bytes, found 4097", status=2, env=long)


# TLS


@pytest.mark.parametrize("name,host,says",
                         [("foreign", "localhost", "unable to get local issuer certificate (--cacert names"),
                          ("elsewhere", "localhost", "hostname mismatch (it is not for the host of the URL)"),
                          ("elsewhere", "127.0.0.1", "IP address mismatch (it is not for the host of the URL)"),
                          ("expired", "localhost", "certificate has expired")])
def test_a_certificate_that_is_not_right(net, name, host, says):
    with setting(net, tls_cert_file=getattr(net.files, name)):
        refuses(f"rediss://{host}:{net.tls_port}", *net.trust,
                says=f"the server's certificate is refused: {says}")


@pytest.mark.parametrize("protocols", ["TLSv1.3", "TLSv1.2"])
def test_a_server_that_wants_a_certificate(net, protocols):
    ours = ("--cert", net.files.client, "--key", net.files.key)
    wants = "the server wants a certificate of ours: --cert and --key name one"
    with setting(net, tls_protocols=protocols, tls_auth_clients="yes"):
        shows(net.tls, *net.trust, *ours)
        refuses(net.tls, *net.trust, says=wants if protocols == "TLSv1.3" else "TLS: ")
        refuses(net.tls, *net.trust, "--cert", net.files.foreign, "--key", net.files.key, says="TLS: ")


def test_files_that_are_not_right(net, tmp_path):
    garbage, gone = tmp_path / "garbage", tmp_path / "gone"
    garbage.write_text("no certificate\n")
    ours = ("--cert", net.files.client)
    no_file = f'expected a file that can be read, found "{gone}": No such file or directory'
    refuses(net.tls, "--cacert", gone, says=f"--cacert: {no_file}", status=2)
    refuses(net.tls, "--cacert", garbage, says=f"--cacert {garbage}: ")
    refuses(net.tls, "--cert", garbage, "--key", net.files.key, says=f"--cert {garbage}: ")
    refuses(net.tls, *ours, "--key", gone, says=f"--key: {no_file}", status=2)
    refuses(net.tls, *ours, "--key", garbage, says=f"--key {garbage}: ")
    refuses(net.tls, *ours, "--key", net.files.locked, says=f"--key {net.files.locked}: ")
    wrong = os.path.join(os.path.dirname(net.files.ours), "ours-key.pem")
    refuses(net.tls, *ours, "--key", wrong, says="key values mismatch")


@both_ways
def test_the_wrong_port(net, way):
    code, lines = talk(way, net.tls.replace("rediss", "redis"), "PING")
    assert (code, len(lines)) == (1, 1) and "if this port has TLS, use rediss:// (closed)" in lines[0], lines
    with answering(b"-ERR unknown command\r\n") as port:
        code, lines = talk(way, f"rediss://127.0.0.1:{port}", "PING")
    assert (code, lines) == (1, ["the server has no TLS at this port: use redis:// (wrong version number)"])
    with answering(b"") as port:
        code, lines = talk(way, f"rediss://127.0.0.1:{port}", "PING")
    assert code == 1 and "during the TLS handshake: has this port TLS?" in lines[0], lines


# Bytes


@contextlib.contextmanager
def accepting(handle):
    """Listens on a free port, and gives each connection to handle()."""
    def serve():
        with contextlib.suppress(OSError):
            while True:
                handle(listener.accept()[0])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def answering(text):
    """A server that sends `text` and closes the connection."""
    def answer(one):
        one.recv(10000)
        one.sendall(text)
        one.close()
    return accepting(answer)


def proxy(port, chunk=1 << 16, cut=None):
    """Forwards connections to `port`. Sends the server's bytes in chunks, and closes the connection after `cut`
    of them."""
    def back(one, other):
        left = cut
        with contextlib.suppress(OSError), one, other:
            while data := other.recv(1 << 16):
                for i in range(0, len(data), chunk):
                    piece = data[i:i + chunk][:left]
                    one.sendall(piece)
                    left = left if left is None else left - len(piece)
                    if left == 0:
                        one.shutdown(socket.SHUT_RDWR)
                        return
            one.shutdown(socket.SHUT_RDWR)

    def forth(one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                for i in range(0, len(data), chunk):
                    other.sendall(data[i:i + chunk])
            other.shutdown(socket.SHUT_RDWR)

    def connect(one):
        other = socket.create_connection(("127.0.0.1", port))
        for end in (one, other):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for work in (back, forth):
            threading.Thread(target=work, args=(one, other), daemon=True).start()
    return accepting(connect)


COMMANDS = ["SET k x5000", "GET k", "ECHO hello", "INCR n", "DEL n", "LRANGE none 0 -1", "GET none", "NOSUCH"]
REPLIES = ["OK", "5000 bytes", "hello", "1", "1", "array of 0", "nil"]


def replies_are_right(code, lines):
    return code == 0 and lines[:7] == REPLIES and lines[7].startswith("ERR unknown command") and len(lines) == 8


@both_ways
@pytest.mark.parametrize("chunk", [1, 2, 7, 1400])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_answers_in_pieces(net, way, chunk, tls):
    with proxy(net.tls_port if tls else net.server.port, chunk) as port:
        address = f"redis{'s' if tls else ''}://worker:SECRET%3a%2F%40%25@localhost:{port}/9"
        code, lines = talk(way, address, *COMMANDS, options=net.trust if tls else ())
    assert replies_are_right(code, lines), lines


@both_ways
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_an_answer_that_is_cut(net, way, tls):
    """Wherever the connection ends, the link says so, and the replies before that are right."""
    rng = random.Random(SEED)
    for _ in range(12):
        cut = rng.randrange(1, 5000)
        with proxy(net.tls_port if tls else net.server.port, cut=cut) as port:
            code, lines = talk(way, f"redis{'s' if tls else ''}://localhost:{port}", *COMMANDS,
                               options=net.trust if tls else ())
        assert code == 1 and lines[:-1] == REPLIES[:len(lines) - 1], (cut, lines)
        assert any(text in lines[-1] for text in ("Server closed the connection", "Connection reset by peer",
                                                  "during the TLS handshake")), (cut, lines)
        assert way == "wait" and len(lines) == 1 or lines[-1].endswith(" (closed)"), (cut, lines)


@pytest.mark.parametrize("transport", ["plain", "unix"])
def test_much_at_once(net, transport):
    """More commands than the buffers of the sockets hold, each with a long reply, over four links in a loop."""
    address = {"plain": net.plain, "unix": f"unix:{net.path}"}[transport]
    commands = ["SET long x100000", *["ECHO x60000"] * 200, *["GET long"] * 200, "STRLEN long"]
    code, lines = talk("poll", address, *commands, links=4)
    assert (code, set(lines)) == (0, {"OK", "60000 bytes", "100000 bytes", "100000"})
    assert lines == ["OK", *["60000 bytes"] * 200, *["100000 bytes"] * 200, "100000"] * 4


def test_much_at_once_by_tls(net):
    """Nearly all replies are short: Redis 7.0.15 closes a connection by TLS ("bad length") when its own writes
    have to wait and more replies come in meanwhile."""
    asked = ["STRLEN x60000"] * 200
    commands = ["SET long x100000", *asked, "GET long", *asked, "STRLEN long"]
    code, lines = talk("poll", net.tls, *commands, links=4, options=net.trust)
    assert (code, lines) == (0, ["OK", *["0"] * 200, "100000 bytes", *["0"] * 200, "100000"] * 4)


@both_ways
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_a_command_that_no_socket_holds(net, way, tls):
    """No reply comes before it has been sent as a whole."""
    address, options = (net.tls, net.trust) if tls else (net.plain, ())
    assert talk(way, address, "SET long x30000000", "DEL long", options=options) == (0, ["OK", "1"])


@both_ways
def test_a_server_that_refuses_us_and_does_not_listen(tmp_path, way):
    """The words of the server are told, and not the error of the write."""
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        def serve():
            with listener.accept()[0] as one:
                one.sendall(b"-ERR max number of clients reached\r\n")
        threading.Thread(target=serve, daemon=True).start()
        code, lines = talk(way, f"unix:{path}", "SET long x30000000", "PING")
    assert code == 1 and lines[0] == "ERR max number of clients reached" and len(lines) == 2, lines


@both_ways
def test_a_reply_that_is_too_long(net, way):
    net.r.set("big", "x" * 3000000)
    try:
        assert talk(way, net.plain, "GET big", reply_max=3100000) == (0, ["3000000 bytes"])
        code, lines = talk(way, net.plain, "PING", "GET big", reply_max=2000000)
        assert (code, lines) == (1, ["PONG", f"{NOT_REDIS} (its answer is too long)"])
        pings = talk(way, net.plain, *["ECHO x1000"] * 5000, reply_max=2000)
        assert pings == (0, ["1000 bytes"] * 5000)  # the limit is for each reply, not for all of them
    finally:
        net.r.delete("big")


@both_ways
def test_an_address_of_something_else(way):
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        assert talk(way, f"redis://127.0.0.1:{port}", "PING") == (1, [NOT_REDIS])
    with answering(b"-ERR max number of clients reached\r\n") as port:
        assert talk(way, f"redis://127.0.0.1:{port}", "PING")[1][0] == "ERR max number of clients reached"
        found = talk(way, f"redis://:SECRET@127.0.0.1:{port}", "PING")  # the reply to AUTH; it may change
        assert found == (1, ["AUTH: ERR max number of clients reached"])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"redis://127.0.0.1:{taken.getsockname()[1]}"
        assert talk(way, address, "PING") == (1, ["cannot connect: Connection refused"])
    code, lines = talk(way, "redis://no-such-host.invalid", "PING")
    assert code == 1 and lines[0].startswith("cannot connect: "), lines
    assert talk(way, "unix:/no/such/socket", "PING") == (1, ["cannot connect: No such file or directory"])


# Sentinels


def bulk(*words):
    return f"*{len(words)}\r\n".encode() + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def names(port):
    """A sentinel that names this port of 127.0.0.1, and closes the connection."""
    return answering(bulk(b"127.0.0.1", str(port).encode()))


def service(*ports):
    return f"redis+sentinel://{','.join(f'127.0.0.1:{port}' for port in ports)}/tw"


def test_the_first_sentinel_that_knows_the_primary_is_followed(net):
    """One is not there, one says nothing, one does not know the service."""
    with socket.create_server(("127.0.0.1", 0)) as silent, answering(b"*-1\r\n") as ignorant:
        with names(net.server.port) as good:
            shows(service(free_port(), silent.getsockname()[1], ignorant, good))


def test_sentinels_and_a_primary_with_tls(net, fleet, tmp_path):
    """The host of each certificate is that of the URL, and the address that the sentinel names."""
    port, folder = free_port(), tmp_path / "work"
    folder.mkdir()
    fleet.sentinel(SimpleNamespace(port=net.tls_port), tls_port=port, tls_replication="yes",
                   tls_cert_file=net.files.good, tls_key_file=net.files.key, tls_ca_cert_file=net.files.ours,
                   tls_auth_clients="no")
    address = f"rediss+sentinel://localhost:{port}/tw"
    shows(address, *net.trust)
    refuses(address, says=f"the sentinel localhost:{port}: the server's certificate is refused: ")
    plain = service(port)
    assert "no primary of the service 'tw' was found: " in top(plain).stderr
    refuses(plain, *net.trust, says="are for TLS: expected --redis rediss://", status=2)
    with answering(b"") as none:
        refuses(address.replace(str(port), str(none)), says="handshake: has this port TLS?")
    with setting(net, tls_cert_file=net.files.elsewhere):
        refuses(address, *net.trust, says=f"127.0.0.1:{net.tls_port}, which a sentinel names: the server's")
    net.r.execute_command("TW.PUT", "by-tls", "a", "IN", 0, "PAYLOAD", "")
    with contextlib.closing(Work(folder, "--redis", address, *net.trust, "by-tls", "--exec", "true")) as work:
        wait_until(lambda: not net.r.exists("by-tls"), message=work.said)
        assert work.stop() == [1, 0, 0, 0, 0]


@both_ways
def test_the_user_and_the_database_are_those_of_the_primary(net, way):
    with names(net.server.port) as port:
        code = "SECRET%3A%2F%40%25"
        found = talk(way, f"redis+sentinel://worker:{code}@127.0.0.1:{port}/tw/3", "CLIENT LIST ID 0", "PING")
        assert found[1][-1] == "PONG" and found[0] == 0, found
        who = talk(way, f"redis+sentinel://worker:{code}@127.0.0.1:{port}/tw", "ACL WHOAMI")
        assert who == (0, ["worker"])
        assert talk(way, f"redis+sentinel://worker:wrong@127.0.0.1:{port}/tw", "PING") == (
            1, [f"the password of user worker is wrong, or there is no such user{REFUSED[way]}"])
        poor = talk(way, f"redis+sentinel://poor:SECRET@127.0.0.1:{port}/tw", "PING")
        assert poor[0] == 1 and poor[1][0].startswith("user poor has no permission for ROLE: "), poor


@both_ways
@pytest.mark.parametrize("answer,why", [
    (b"*-1\r\n", " does not know the service"),
    (b"-ERR No such thing\r\n", ": ERR No such thing"),
    (b"", ": Server closed the connection"),
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", " is not a Redis server"),
    (b"$70000\r\n" + b"x" * 70000, " is not a Redis server"),
    (b"+OK\r\n", " has not replied with host and port"),
    (bulk(b"h"), " has not replied with host and port"),
    (bulk(b"h", b"0"), " has not replied with host and port"),
    (bulk(b"h", b"65536"), " has not replied with host and port"),
    (bulk(b"", b"7"), " has not replied with host and port"),
    (bulk(b"x" * 256, b"7"), " has not replied with host and port"),
])
def test_a_sentinel_that_cannot_help(way, answer, why):
    with answering(answer) as port:
        found = talk(way, service(port), "PING")
    assert found == (1, [f"no primary of the service 'tw' was found: the sentinel 127.0.0.1:{port}{why}"])


@both_ways
def test_a_primary_that_is_none(way):
    with answering(bulk(b"slave")) as replica, names(replica) as port:
        assert talk(way, service(port), "PING") == (1, ["the server is no primary: its role is 'slave'"])
    closed = free_port()
    with names(closed) as port:
        assert talk(way, service(port), "PING") == (
            1, [f"127.0.0.1:{closed}, which a sentinel names: cannot connect: Connection refused"])


@both_ways
def test_a_sentinel_that_wants_a_password(net, way):
    """It is the sentinels' own one. The primary here wants none."""
    right = bulk(b"AUTH", b"SECRET of ours")

    def answer(one):
        asked = one.recv(10000)
        one.sendall(b"+OK\r\n" + bulk(b"127.0.0.1", str(net.server.port).encode()) if asked.startswith(right)
                    else b"-NOAUTH Authentication required.\r\n")
        one.close()
    with accepting(answer) as port:
        assert talk(way, service(port), "PING", env={"TICKWHEEL_SENTINEL_PASSWORD": "SECRET of ours"}) == (
            0, ["PONG"])
        assert talk(way, service(port), "PING", env={"TICKWHEEL_SENTINEL_PASSWORD": ""})[0] == 1
        assert talk(way, service(port), "PING") == (
            1, [f"no primary of the service 'tw' was found: the sentinel 127.0.0.1:{port}: "
                "NOAUTH Authentication required."])


def test_a_server_that_says_nothing(net):
    """A Redis server without TLS may say nothing either: it takes the greeting of TLS for a line of a command,
    and waits for its end."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        rows = [(f"redis://:SECRET@127.0.0.1:{port}", "there was no answer for 3 s"),
                (f"rediss://127.0.0.1:{port}", "there was no TLS handshake (has this port TLS?) for 3 s"),
                (net.plain.replace("redis", "rediss"), "TLS")]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for one in [pool.submit(refuses, address, says=says) for address, says in rows]:
                one.result(PATIENCE)
