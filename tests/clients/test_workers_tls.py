# SPDX-License-Identifier: MIT
"""Workers of each language over TLS, by the URL alone: rediss://."""
import subprocess

import pytest
from harness import HOST, PATIENCE, Broken, free_port, wait_until
from situations import put
from subject import NOTHING, languages
# pylint: disable=unused-import
from test_workers import start


@pytest.fixture(params=languages())
def language(request):
    return request.param


@pytest.fixture
def secure(fleet, tmp_path, monkeypatch):
    """A server with a port for TLS, whose certificate the programs trust, and the URL of that port."""
    key, certificate, port = tmp_path / "key.pem", tmp_path / "certificate.pem", free_port()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=a server",
                    "-addext", f"subjectAltName=IP:{HOST}"], capture_output=True, check=True, timeout=PATIENCE)
    for name in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"):
        monkeypatch.setenv(name, str(certificate))
    server = fleet.server(start=False, appendonly="yes", tls_port=port, tls_cert_file=certificate,
                          tls_key_file=key, tls_ca_cert_file=certificate, tls_auth_clients="no")
    try:
        server.start()
    except Broken:
        if "tls-port" in server.log():
            pytest.skip("this server is built without TLS")
        raise
    return server, f"rediss://{HOST}:{port}"


def test_a_worker_over_tls(secure, start, queue):
    """All of its connections have TLS, also those that it makes when the server was restarted."""
    server, url = secure
    subject = start(queue, url=url, jobs=2)
    for name in ("before", "after"):
        r = server.client()
        put(r, queue, name, payload=("ok",))
        subject.wait("end", queue, name, 1)
        wait_until(lambda found=r: not found.exists(queue), subject.story)
        server.kill()
        server.start()
    assert subject.stop() == {**NOTHING, "done": 2}
