"""Groups by site: an inventory names networks, and sums are those of its hosts."""

import ipaddress
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrctrace
from tfrctrace.base.errors import UsageError
from tfrctrace.base.inventory import OTHER, Inventory, read_inventory
from tfrctrace.metrics.groups import SUMS

MIXED = Path(__file__).parents[3] / "sample_traces" / "mixed.pcap.zst"

TOML = """
[server]
networks = ["192.0.2.2", "2001:db8::2/128"]
promised = "4M"

[clients]
networks = ["192.0.2.0/24"]
"""
CSV = "network,name,promised\n192.0.2.2,server,4M\n2001:db8::2,server,\n\n192.0.2.0/24,clients,\n"


@pytest.fixture(params=[("sites.toml", TOML), ("sites.csv", CSV)], ids=["toml", "csv"])
def inventory(request, tmp_path):
    path = tmp_path / request.param[0]
    path.write_text(request.param[1])
    return path


def test_sites_are_the_sums_of_their_hosts(inventory):
    hosts = tfrctrace.open(MIXED).groups("host", "1s").rows
    sites = tfrctrace.open(MIXED).groups("site", "1s", inventory=inventory).rows
    members = {
        "server": ["192.0.2.2", "2001:db8::2"],
        "clients": ["192.0.2.1"],
        OTHER: ["2001:db8::1"],
    }
    assert set(sites["group"]) == set(members)
    for site, addresses in members.items():
        own = sites.filter(group=site).select(SUMS).sum()
        assert own.equals(hosts.filter(pl.col("group").is_in(addresses)).select(SUMS).sum())
    promised = sites.filter(group="server")
    assert set(promised["promised_bps"]) == {4e6}
    assert promised["promised_share"].to_list() == pytest.approx((promised["goodput_bps"] / 4e6).to_list())
    assert sites.filter(group="clients")["promised_bps"].null_count() == len(sites.filter(group="clients"))


def test_the_command_and_objectives_know_sites(run, inventory, tmp_path):
    out = run("groups", "--by", "site", "--inventory", inventory, MIXED).out
    assert {line.split()[0] for line in out.splitlines()[2:6]} == {"server", "clients", OTHER}
    limits = tmp_path / "limits.toml"
    limits.write_text(
        f'[[objective]]\nrequire = "p95(rtt_ms) < 9000"\nby = "site"\ninventory = "{inventory}"\nevery = "1s"'
    )
    assert run("check", "--limits", limits, MIXED).status == 0
    assert run("groups", "--by", "site", MIXED).err.startswith("error: groups by site need an inventory")
    assert run("groups", "--inventory", inventory, MIXED).err.startswith("error: an inventory names sites")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.toml", "", "names no network"),
        ("a.toml", '[a]\nnetworks = ["10.0.0.1/8"]', "has host bits set"),
        ("a.toml", '[a]\nnetworks = ["10.0.0.0/8"]\n[b]\nnetworks = ["10.0.0.0/8"]', "is `a` already"),
        ("a.toml", '[a]\nnetworks = ["10.0.0.0/8"]\npromised = "quick"', "quick"),
        ("a.toml", "[a\n", "not TOML"),
        ("a.toml", "[a]\nhosts = []", "hosts"),
        ("a.csv", "prefix,name\n", "has the columns prefix, name"),
        ("a.csv", "network,name\n10.0.0.1\n", "line 2 has 1 cells"),
        ("a.csv", "network,name,promised\n10.0.0.1,a,1M\n10.0.0.2,a,2M\n", "two promised rates"),
        ("missing.csv", None, "no such file"),
    ],
)
def test_what_is_no_inventory_is_refused(tmp_path, name, content, words):
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=words):
        read_inventory(str(path))


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 32)).map(
            lambda drawn: ipaddress.ip_network(drawn, strict=False)
        ),
        st.sampled_from("abc"),
        max_size=20,
    ),
    st.integers(0, 2**32 - 1).map(ipaddress.IPv4Address),
)
def test_the_smallest_network_names_an_address(names, address):
    having = [network for network in names if address in network]
    expected = names[max(having, key=lambda network: network.prefixlen)] if having else OTHER
    assert Inventory(names, {}).name_of(str(address)) == expected
