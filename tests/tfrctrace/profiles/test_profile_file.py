"""Profiles in files: those of the program say where they are from, those of users are checked."""

import pytest

from tfrctrace.base.errors import UsageError
from tfrctrace.profiles.profile_file import known_profiles, read_profiles

HEAD = 'title = "t"\nsource = "s"\nversion = "1"\n'
OUTCOME = f'kind = "quality of outcome"\n{HEAD}'
DELAY = '[[delay]]\npercentile = 99\noptimal = "100 ms"\nunacceptable = "200 ms"\n'


def test_every_profile_has_a_source_and_a_version():
    profiles = read_profiles(known_profiles())
    assert {one.name for one in profiles} == {"delay-under-load", "quality-of-outcome", "voice"}
    assert all(one.source and one.version and one.url.startswith("https://") for one in profiles)


def test_a_file_of_a_users_own_is_named_by_its_file(tmp_path):
    path = tmp_path / "calls.toml"
    path.write_text(
        f'{OUTCOME}loss = {{ optimal = "0.5 %", unacceptable = 0.03 }}\n'.replace("0.03", '"3%"') + DELAY
    )
    (profile,) = read_profiles([str(path)])
    assert profile.name == "calls"
    assert (profile.rules.optimal_loss, profile.rules.unacceptable_loss) == (0.005, 0.03)
    assert profile.rules.least_bps is None


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (f'kind = "quality"\n{HEAD}', "`kind` cannot be `quality`"),
        (f'kind = "voice"\n{HEAD}buffer = "60 ms"\nrest = "x"\n', r"`\[\[codec\]\]` is missing"),
        (OUTCOME, r"`\[\[delay\]\]` is missing"),
        ('kind = "quality of outcome"\ntitle = "t"\nsource = "s"\n' + DELAY, "`version`"),
        (OUTCOME + "jitter = 3\n" + DELAY, "unknown key `jitter`"),
        (OUTCOME + DELAY + DELAY, "a percentile twice"),
        (OUTCOME + DELAY.replace("200 ms", "100 ms"), "must be more than `optimal`"),
        (OUTCOME + DELAY.replace("99", "101"), "at most 100"),
        (OUTCOME + DELAY.replace("100 ms", "-1 ms"), "not a duration"),
        (OUTCOME + 'loss = { optimal = "3 %", unacceptable = "1 %" }\n' + DELAY, "`loss`"),
        (OUTCOME + "loss = 3\n" + DELAY, "`loss` must be a table"),
        (
            f'kind = "delay under load"\n{HEAD}rest = "F"\n'
            '[[grade]]\nname = "A"\nbelow = "9 ms"\n[[grade]]\nname = "B"\nbelow = "5 ms"\n',
            "in the order of `below`",
        ),
        ("kind = [", "not TOML"),
    ],
)
def test_an_invalid_file_is_named_with_what_is_wrong(tmp_path, content, complaint):
    path = tmp_path / "own.toml"
    path.write_text(content)
    with pytest.raises(UsageError, match=complaint) as raised:
        read_profiles([str(path)])
    assert str(path) in str(raised.value)


def test_an_unknown_name_lists_those_that_are_known():
    with pytest.raises(UsageError, match="no profile is named `qo`") as raised:
        read_profiles(["qo"])
    assert "quality-of-outcome" in (raised.value.hint or "")


def test_one_profile_is_not_named_twice():
    with pytest.raises(UsageError, match="two profiles"):
        read_profiles(["voice", "voice"])
