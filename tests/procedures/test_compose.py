"""The demo in containers: its file fits the schema, its parts exist, its scripts work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.postgres_server import PostgresServer
from tests.procedures.desk import Desk

ROOT = Path(__file__).parents[2]
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
            name, _, value = line.strip().partition(":")
            if name.endswith("PASSWORD"):
                assert value.strip().startswith("${"), f"{path}: {name}"


def test_the_demo_answers(own_server: PostgresServer) -> None:
    with own_server.database() as url:
        desk = Desk(own_server, url)
        desk.run((ROOT / "docker" / "init" / "10-demo-data.sql").read_text())
        desk.analyst("ada")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        query = str(ROOT / "docker" / "triangles.sql")
        environment = {**os.environ, "OWNER_URL": url, "QUERY_FILE": query, "PATH": path}
        for _ in range(2):
            subprocess.run(
                ["sh", ROOT / "docker" / "install.sh"], env=environment, check=True, cwd=ROOT
            )
        (true_count,) = desk.run(Path(query).read_text())[0]
        assert true_count > 1000
        answer = desk.ask("2", name="count_triangles")
        # The noise is a few times the sensitivity, which is far below the count here.
        assert 0.5 * true_count < answer < 1.5 * float(true_count)


@pytest.mark.parametrize(
    "script", ["docker/install.sh", "docker/serve.sh", "docker/init/20-roles.sh"]
)
def test_the_scripts_are_shell(script: str) -> None:
    subprocess.run(["sh", "-n", ROOT / script], check=True)
