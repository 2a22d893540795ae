# SPDX-License-Identifier: MIT
"""clients/node: its interface, its package, its types, and the program of docs/node.md. The behaviour that all
workers share is in test_workers.py. Most checks are in scripts of node/, since each start of Node takes 50 ms.

TICKWHEEL_NODE_PATH: the folder that has node-redis; Debian's if unset.
TICKWHEEL_NODE_DRIVER: the driver for SQLite of the tests of a file; Debian's sqlite3 if unset. Long rounds have
better-sqlite3 too, where fetch_better_sqlite3 has fetched it."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import tarfile

import pytest
from harness import HOST, PATIENCE, ROOT, program, version, wait_until
from python_package import new_file
from subject import command, node_driver, node_path

ROOT = pathlib.Path(ROOT)
PACKAGE, SCRIPTS = ROOT / "clients/node", pathlib.Path(__file__).parent / "node"
MODULES = node_path()[0]
PAGE = ROOT / "docs/node.md"
BLOCK = re.compile(r"^```js\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BETTER_SQLITE3 = ROOT / "build/better-sqlite3/node_modules"
FILE_SECTION = re.compile(r"^## A file instead of a server$.*?(?=^## )", re.DOTALL | re.MULTILINE)


def node():
    return program("NODE", "node", "nodejs", package="nodejs")


def of_npm(name):
    """A tool that `make test` does not install."""
    return shutil.which(name) or pytest.skip(f"{name} is not installed")


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """The tarball of `npm pack`, made from a copy, as npm may write next to the source."""
    folder = tmp_path_factory.mktemp("pack")
    shutil.copytree(PACKAGE, folder / "source")
    run([of_npm("npm"), "pack", "--offline", folder / "source"], cwd=folder,
        env={"npm_config_cache": str(folder / "cache"), "npm_config_update_notifier": "false"})
    return folder / f"tickwheel-{version()}.tgz"


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """A folder with node_modules, in which programs import `tickwheel` and `redis`."""
    folder = tmp_path_factory.mktemp("program") / "node_modules"
    folder.mkdir()
    (folder / "tickwheel").symlink_to(PACKAGE)
    (folder / "redis").symlink_to(pathlib.Path(MODULES) / "redis")
    return folder


DRIVERS = [pytest.param(None, id="usual")]
if BETTER_SQLITE3.exists():
    DRIVERS.append(pytest.param(BETTER_SQLITE3, id="better-sqlite3", marks=pytest.mark.long(only=True)))


@pytest.fixture(params=DRIVERS)
def driver(request):
    """A driver for SQLite, and the folders that have it and npm's other packages."""
    if request.param is None:
        return node_driver(), node_path()
    return "better-sqlite3", [*node_path(), str(request.param)]


def run(words, env=None, **options):
    """Runs a program to its end, and returns its output."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, timeout=PATIENCE,
                          env={**os.environ, **(env or {})}, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment(modules, server=None, folders=None):
    found = {"NODE_PATH": ":".join([str(modules), *(folders or node_path())])}
    return {**found, "TICKWHEEL_URL": f"redis://{HOST}:{server.port}"} if server else found


# The interface

@pytest.mark.parametrize("script", ["queue.js", "worker.js", "connect.js"])
def test_the_interface(script, common, modules, tmp_path):
    all_pass(run([node(), SCRIPTS / script, tmp_path], env=environment(modules, common)))


def test_a_file(modules, driver, tmp_path):
    new_file(tmp_path, "new.db")
    name, folders = driver
    env = {"TICKWHEEL_DRIVER": name, "TICKWHEEL_BUILD": os.path.dirname(command()[0])}
    all_pass(run([node(), SCRIPTS / "file.js", tmp_path], env={**environment(modules, folders=folders), **env}))


def all_pass(told):
    """Asserts that node:test has run tests, and that none of them has failed."""
    for wanted, line in ((True, "# fail 0"), (False, "# pass 0")):
        assert bool(re.search(f"^{line}$", told, re.MULTILINE)) == wanted, told


WITHOUT = """
const Module = require("module"), load = Module._load;
Module._load = (name, ...rest) => {
    if (!/^(redis|better-sqlite3)$/.test(name)) return load(name, ...rest);
    throw Object.assign(new Error(name), { code: "MODULE_NOT_FOUND" });
};
const { connect } = require("tickwheel");
const urls = ["redis://h", "redis+cluster://h", "redis+sentinel://h/s", "unix:///s"];
const calls = urls.map((url) => connect(url)).concat(connect("sqlite:///a.db", { driver: "better-sqlite3" }));
Promise.allSettled(calls).then((all) => all.forEach((one) => console.log(one.reason.message)));
"""


def test_a_program_needs_the_driver_of_its_home_alone(tmp_path):
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/tickwheel").symlink_to(PACKAGE)
    said = run([node(), "-e", WITHOUT], cwd=tmp_path).splitlines()
    assert len(said) == 5 and all("needs npm's redis: npm install redis" in line for line in said[:4]), said
    assert said[4].startswith("better-sqlite3: not found: use Node 22.13 or later, or npm install"), said


@pytest.mark.long(only=True)
def test_a_cluster(fleet, modules):
    """Queues in more slots than the worker has places, and a slot that moves while the worker waits."""
    cluster = fleet.cluster(primaries=2)
    process = subprocess.Popen([node(), str(SCRIPTS / "cluster.js")], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True,
                               env={**os.environ, **environment(modules, cluster.nodes[0])})
    try:
        assert process.stdout.readline() == "worked\n"
        move_slot(cluster, "{0}:work")
        process.stdin.write("go on\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ok\n" and process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def move_slot(cluster, key):
    """Moves the slot of a key that does not exist to the other node."""
    source = cluster.owner(key)
    target = next(one for one in cluster.nodes if one is not source)
    slot = source.once("CLUSTER", "KEYSLOT", key)
    for one in (target, source):
        one.once("CLUSTER", "SETSLOT", slot, "NODE", cluster.id(target))
    wait_until(lambda: all(cluster.owner(key) is target for _ in cluster.nodes))


# The package

def test_the_package_has_what_is_needed_and_no_more(packed):
    with tarfile.open(packed) as archive:
        names = {name.removeprefix("package/") for name in archive.getnames()}
        described = json.load(archive.extractfile("package/package.json"))
    sources = {f"lib/{path.name}" for path in (PACKAGE / "lib").iterdir()}
    assert names == {"package.json", "index.d.ts", "README.md", "LICENSE"} | sources
    assert described["version"] == version()
    assert described["peerDependencies"].keys() == described["peerDependenciesMeta"].keys()
    assert "dependencies" not in described
    assert (PACKAGE / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_package_is_required_and_imported(packed, tmp_path):
    """Both ways give the same classes."""
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path / "node_modules")
    (tmp_path / "node_modules/package").rename(tmp_path / "node_modules/tickwheel")
    (tmp_path / "a.mjs").write_text("""
        import { createRequire } from "module";
        import all, * as names from "tickwheel";
        const required = createRequire(import.meta.url)("tickwheel");
        const { default: _, ...named } = names;
        if (required !== all) throw new Error("two packages");
        console.log(JSON.stringify([Object.keys(named).sort(), Object.keys(required).sort(),
            Object.keys(named).every((name) => named[name] === required[name])]));
    """)
    named, required, same = json.loads(run([node(), tmp_path / "a.mjs"], env={"NODE_PATH": MODULES}))
    types = (PACKAGE / "index.d.ts").read_text()
    declared = re.findall(r"^export (?:class|function) (\w+)", types, re.MULTILINE)
    assert named == required == sorted(declared) and same


def test_types(modules):
    """tsc accepts the uses in types.ts, and refuses each one behind @ts-expect-error."""
    roots = os.environ.get("TICKWHEEL_NODE_TYPES", f"{MODULES}/@types")
    if not os.path.isdir(f"{roots}/node"):
        pytest.skip("no @types/node: Debian's nodejs has it, TICKWHEEL_NODE_TYPES names another folder")
    source = modules.parent / "types.ts"
    shutil.copy(SCRIPTS / "types.ts", source)
    run([of_npm("tsc"), "--noEmit", "--strict", "--target", "es2022", "--module", "node16",
         "--moduleResolution", "node16", "--typeRoots", roots, "--types", "node", source], cwd=modules.parent)


# The page

BEFORE = """
const served = (address) => address !== "eve@nowhere";
const sent = [];
const deliver = async (address, { signal }) => { if (!signal.aborted) sent.push(address); };
const mailServerIsBusy = () => false, isNight = () => false;
"""

# The worker of the page works until it has a signal. It comes when two mails are sent and one is dead.
WHEN_DONE = """
await mails.cancel("monday:ann");
worker.on("dead", async () => {
    const pending = async () => await client.exists(mails.key) || sent.length < 2;
    while (await pending()) await new Promise((again) => setTimeout(again, 5));
    process.kill(process.pid, "SIGTERM");
});
"""

AFTER = """
if (JSON.stringify([done, failed, died, back, notYours, sent.sort()]) !==
    '[3,1,1,0,0,["ann@example.org","bob@example.org"]]') throw new Error(`${done} ${failed} ${died} ${sent}`);
if (await client.get("{shop}:paid") !== "7") throw new Error("the bill is not paid");
const state = await client.hGet("{shop}:order:42", "state");
if (await timeouts.count() !== 0 || state !== "paid") throw new Error(state);
if (task.state !== "waiting" || await mails.count() !== 0) throw new Error(task.state);
await client.quit();
console.log("the page is through");
"""


def test_the_page_docs_node_md(server, modules):
    """The blocks of docs/node.md are one program. Its server is another one here."""
    blocks = BLOCK.findall(FILE_SECTION.sub("", PAGE.read_text()))
    run_at = next(i for i, block in enumerate(blocks) if "worker.run()" in block)
    text = "\n".join([BEFORE, *blocks[:run_at], WHEN_DONE, *blocks[run_at:], AFTER])
    assert text.count("redis://127.0.0.1:7379") == 2
    source = modules.parent / "page.mjs"
    source.write_text(text.replace("127.0.0.1:7379", f"{HOST}:{server.port}"))
    told = run([node(), source], env=environment(modules), cwd=modules.parent)
    assert told.splitlines()[-1] == "the page is through"
    assert "welcome:eve died after 1 attempts: no such address" in told
    assert "3 done, 1 failed, 1 of them for the last time, 0 given back, 0 not yours" in told
    assert "paid so far: 7" in told


# The page leaves out that the worker of the payments runs.
PAID = """
if (typeof cashier !== "undefined") console.log((await cashier.runReady({ throwErrors: true })).done, "done");
"""

# Another program waits for the end of the work.
WORKED = """
const counts = worker.run();
await new Promise((resolve) => worker.on("done", resolve));
process.kill(process.pid, "SIGTERM");
await counts;
"""


def test_the_section_about_a_file(modules, driver, tmp_path):
    """The blocks of docs/node.md about a file are a program too, of which the test leaves out the blocks with
    another driver."""
    name, folders = driver
    new_file(tmp_path, "shop.db")
    (tmp_path / "node_modules").mkdir()
    for path in modules.iterdir():
        (tmp_path / "node_modules" / path.name).symlink_to(path)
    blocks = [block for block in BLOCK.findall(FILE_SECTION.search(PAGE.read_text())[0])
              if f'from "{name}"' in block or not re.search('from "(better-)?sqlite3"', block)]
    run_at = next(i for i, block in enumerate(blocks) if "worker.run()" in block)
    blocks[run_at] = blocks[run_at].replace("await worker.run();", WORKED)
    source = tmp_path / "file.mjs"
    source.write_text("\n".join([*blocks, PAID, 'console.log(await mails.count(), "waits");']))
    if name != "node:sqlite":
        (tmp_path / "node_modules" / name).symlink_to(
            next(path for path in (pathlib.Path(one) / name for one in folders) if path.exists()))
    told = run([node(), source], env=environment(modules, folders=folders), cwd=tmp_path)
    if name == "node:sqlite":
        assert told.splitlines() == ["to ann@example.org 1", "0 waits"]
        return
    assert told.splitlines() == ["to ann@example.org 1", "1 done", "1 waits"]
    with contextlib.closing(sqlite3.connect(tmp_path / "shop.db")) as db:
        assert db.execute("SELECT id, paid FROM orders").fetchall() == [(47, 9)]
