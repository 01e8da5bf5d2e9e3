"""A role of the data's database that may read views only: what it is told, and what works."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

import sqlrs
from sqlrs.errors import QueryRefused
from sqlrs.proxy import add_user, check_config
from tests.proxy.harness import PASSWORD

SCHEMA = """
CREATE TABLE visit (id int PRIMARY KEY, kind text, secret text);
CREATE VIEW safe AS SELECT id, kind FROM visit WHERE kind <> 'x';
CREATE VIEW safer AS SELECT id FROM safe;
CREATE TABLE shop (id int PRIMARY KEY);
CREATE VIEW shops AS SELECT id FROM shop;
CREATE ROLE viewer LOGIN PASSWORD 'views-only';
GRANT SELECT ON safe, safer, shop, shops TO viewer;
"""


@pytest.fixture
def viewer(postgres_db: str) -> str:
    with psycopg.connect(postgres_db, autocommit=True) as owner:
        owner.execute(SCHEMA.replace("viewer", name := _role(postgres_db)))
    url = make_url(postgres_db).set(username=name, password="views-only")
    return url.render_as_string(hide_password=False)


def _role(url: str) -> str:
    """Roles belong to the whole server, so each database's has a name of its own."""
    return f"viewer_of_{make_url(url).database}"


def test_what_a_role_with_rights_on_views_alone_gets(
    viewer: str, postgres_db: str, tmp_path: Path
) -> None:
    try:
        _check(viewer, postgres_db, tmp_path)
    finally:
        with psycopg.connect(postgres_db, autocommit=True) as owner:
            owner.execute(f"DROP OWNED BY {_role(postgres_db)}; DROP ROLE {_role(postgres_db)}")


def _check(viewer: str, owner_url: str, folder: Path) -> None:
    with sqlrs.connect(viewer) as database:
        # A view is counted by the tables behind it, which this role may not read.
        for view in ("safe", "safer"):
            with pytest.raises(QueryRefused) as caught:
                database.count(f"SELECT count(*) FROM {view}", 1)
            assert caught.value.code == "unknown_table"
            assert f"of what view {view} reads" in caught.value.message
            assert "may not read all" in caught.value.message
            assert "there is no table public.visit for it" in (caught.value.hint or "")
            assert "GRANT SELECT" in (caught.value.hint or "")
        assert database.count("SELECT count(*) FROM shops", 1).epsilon == 1
    add_user(folder / "users.toml", "alice", PASSWORD)
    config = folder / "sqlrs.toml"
    config.write_text(f'[data]\nledger = "sqlite:///{folder}/budget.db"\ndb = "{viewer}"\n')
    config.chmod(0o600)
    lines = check_config(config)
    assert "exposes shop, shops" in lines
    assert [line for line in lines if line.startswith("warning: ")] == [
        f"warning: view public.{view} is not offered: the role cannot read every table behind it; "
        "GRANT SELECT on the columns of those tables that the view names"
        for view in ("safe", "safer")
    ]
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute(f"GRANT SELECT (id) ON visit TO {_role(owner_url)}")
    with sqlrs.connect(viewer) as database, pytest.raises(QueryRefused, match="may not read all"):
        database.count("SELECT count(*) FROM safe", 1)
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute(f"GRANT SELECT (id, kind) ON visit TO {_role(owner_url)}")
    with sqlrs.connect(viewer) as database:
        for view in ("safe", "safer"):
            assert database.count(f"SELECT count(*) FROM {view}", 1).epsilon == 1
        # No more than these columns is there for anybody.
        (visit,) = (table for table in database.catalog.tables if table.name == "visit")
        assert [column.name for column in visit.columns] == ["id", "kind"]
    assert not [line for line in check_config(config) if line.startswith("warning: ")]
