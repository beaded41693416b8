"""A batch on a Dask cluster of which a worker dies, and from a bucket of moto: where these are installed."""

from __future__ import annotations

import json
import os
import signal
import threading
import time

import pytest
from patience import PATIENCE_S


def index_of(folder):
    return json.loads((folder / "index.json").read_text())


def test_a_cluster_that_loses_a_worker_does_all_chains(run, farm, tmp_path, contents, monkeypatch):
    distributed = pytest.importorskip("distributed")
    run("batch", "farm", "-o", "one", "-j", "1")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())

        def kill_one():
            while not list((tmp_path / "two").glob("chains/*/facts.json")):
                time.sleep(0.01)
            os.kill(pids[0], signal.SIGKILL)

        killer = threading.Thread(target=kill_one, daemon=True)
        killer.start()
        outcome = run(
            "batch", "farm", "-o", "two", "--executor", f"dask:{cluster.scheduler_address}", "-j", "2"
        )
        killer.join(PATIENCE_S)
        assert outcome.status == 0, outcome.err
        assert not killer.is_alive()
    # what the worker had begun when it was killed is removed by the next run
    assert run("batch", "farm", "-o", "two", "-j", "1").status == 0
    assert contents(tmp_path / "two") == contents(tmp_path / "one")


def test_moto_serves_a_bucket_as_files_are_read(run, farm, tmp_path, monkeypatch):
    pytest.importorskip("obstore")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    boto3 = pytest.importorskip("boto3")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    server.start()
    try:
        host, port = server.get_host_and_port()
        client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
        client.create_bucket(Bucket="night")
        for path in farm.iterdir():
            client.put_object(Bucket="night", Key=f"a/{path.name}", Body=path.read_bytes())
        line = ["batch", "s3://night/a/", "--endpoint", f"http://{host}:{port}", "--chains", "none"]
        outcome = run(*line, "-o", "cloud", "-j", "2")
        assert outcome.status == 0, outcome.err
        assert "6 done before" in run(*line, "-o", "cloud").err
    finally:
        server.stop()
    run("batch", "farm", "-o", "here", "-j", "1")
    of_files, of_objects = (
        {one["name"].rpartition("/")[2]: one["packets"] for one in index_of(tmp_path / folder)["chains"]}
        for folder in ("here", "cloud")
    )
    assert of_objects == of_files
