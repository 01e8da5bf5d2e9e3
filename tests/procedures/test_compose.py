"""The demo in containers: its file fits the schema, its parts exist, its scripts work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from ruamel.yaml import YAML

from sqlrs.procedures.server_statistics import warnings
from tests.procedures.desk import PASSWORD, Desk
from tests.support.postgres_server import PostgresServer, find_binaries

ROOT = Path(__file__).parents[2]
# Where the command sqlrs is, then what the shell needs.
_PATH = (str(Path(sys.executable).parent), os.environ["PATH"])
COMPOSE = ROOT / "docker-compose.yml"


def validate(path: Path) -> int:
    command = ["-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path)]
    return subprocess.run([sys.executable, *command], capture_output=True, check=False).returncode


def test_the_file_fits_the_schema(tmp_path: Path) -> None:
    assert validate(COMPOSE) == 0
    broken = tmp_path / "docker-compose.yml"
    broken.write_text(COMPOSE.read_text().replace("healthcheck:", "healthchek:", 1))
    assert validate(broken) != 0


def test_everything_it_names_exists() -> None:
    services = YAML(typ="safe").load(COMPOSE.read_text())["services"]
    assert set(services) == {"postgres", "install", "sqlrs"}
    for service in services.values():
        if "build" in service:
            assert (ROOT / service["build"]["dockerfile"]).is_file()
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert not source.startswith(".") or (ROOT / source).is_dir()
        for script in (part for part in service.get("entrypoint", ()) if part.endswith(".sh")):
            assert (ROOT / "docker" / Path(script).name).is_file()
    copied = (ROOT / "docker" / "Dockerfile").read_text()
    for name in ("install.sh", "serve.sh", "serve.toml", "triangles.sql"):
        assert f"docker/{name}" in copied and (ROOT / "docker" / name).is_file()


def test_no_password_is_written_down() -> None:
    for path in (COMPOSE, *(ROOT / "docker").rglob("*.*")):
        for line in path.read_text().splitlines():
            name, colon, value = line.strip().partition(":")
            if name.endswith("PASSWORD") and colon:
                assert value.strip().startswith("${"), f"{path}: {name}"


def test_images_have_versions() -> None:
    services = YAML(typ="safe").load(COMPOSE.read_text())["services"].values()
    images = [service["image"] for service in services if "build" not in service]
    images += re.findall(r"^FROM (\S+)", (ROOT / "docker" / "Dockerfile").read_text(), re.MULTILINE)
    assert len(images) == 2
    for image in images:
        assert re.search(r":\d+\.\d+|@sha256:", image), image


def test_the_demo_answers(tmp_path: Path) -> None:
    """The scripts of the containers in their order, on a server of their own."""
    spy = tmp_path / "psql"
    spy.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/seen\nexec {find_binaries()}/psql "$@"\n')
    spy.chmod(0o755)
    query = str(ROOT / "docker" / "triangles.sql")
    passwords = {"ANALYST_PASSWORD": PASSWORD, "READER_PASSWORD": 'it\'s \\ "odd"'}
    with PostgresServer() as server, server.database() as url:
        parts = urlsplit(url)
        database = parts.path.strip("/")
        environment = {
            **os.environ,
            **passwords,
            "PATH": os.pathsep.join((str(tmp_path), *_PATH)),
            "PGHOST": "127.0.0.1",
            "PGPORT": str(parts.port),
            "PGPASSWORD": parts.password or "",
            "POSTGRES_USER": "postgres",
            "POSTGRES_DB": database,
            "OWNER_URL": f"postgresql://postgres@127.0.0.1:{parts.port}/{database}",
            "QUERY_FILE": query,
        }

        def run(script: str) -> None:
            command: list[str | Path] = ["sh", ROOT / "docker" / script]
            subprocess.run(command, env=environment, check=True, cwd=ROOT, capture_output=True)

        desk = Desk(server, url)
        desk.run((ROOT / "docker" / "init" / "10-demo-data.sql").read_text())
        run("init/20-roles.sh")
        for _ in range(2):
            run("install.sh")
        seen = (tmp_path / "seen").read_text()
        assert "--username postgres" in seen
        assert not any(password in seen for password in passwords.values())
        (true_count,) = desk.run(Path(query).read_text())[0]
        assert true_count > 1000
        answer = desk.ask("2", name="count_triangles")
        # The noise is a few times the sensitivity, which is far below the count here.
        assert 0.5 * true_count < answer < 1.5 * float(true_count)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            desk.run("SELECT n_live_tup FROM pg_stat_user_tables", "ada")
        assert list(warnings(url)) == []
        reader = make_conninfo(url, user="reader", password=passwords["READER_PASSWORD"])
        with psycopg.connect(reader) as connection:
            assert connection.execute("SELECT count(*) > 0 FROM edge").fetchone() == (True,)


@pytest.mark.parametrize(
    "script", ["docker/install.sh", "docker/serve.sh", "docker/init/20-roles.sh"]
)
def test_the_scripts_are_shell(script: str) -> None:
    subprocess.run(["sh", "-n", ROOT / script], check=True)
