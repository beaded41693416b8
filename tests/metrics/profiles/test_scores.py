"""Scores against what their sources publish: the draft's example, tables of grades, values of ITU-T."""

import pytest

from tfrctrace.metrics.profiles.outcome import Conditions, Delay, Requirement, quality_of_outcome
from tfrctrace.metrics.profiles.stream_opinion import StreamFacts, stream_opinion
from tfrctrace.metrics.profiles.voice import Codec, delay_impairment, equipment_impairment, opinion, rating
from tfrctrace.profiles.profile_file import known_profiles, read_profiles

# draft-ietf-ippm-qoo-09, section "Example"
NEEDED = Requirement((Delay(99, 200, 500), Delay(99.9, 300, 600)), 1, 0.01, 0.05, 4e6)


def test_the_example_of_the_draft_has_its_score():
    found = quality_of_outcome(NEEDED, Conditions({99: 350, 99.9: 375}, 5_000, 0.02, 28e6))
    assert (found.delay, found.loss, found.throughput) == pytest.approx((50, 75, 100))
    assert found.score == pytest.approx(50)
    assert found.unknown == ()


@pytest.mark.parametrize(
    ("p99_ms", "loss", "score"),
    [(200, 0.01, 100), (500, 0.01, 0), (900, 0.0, 0), (20, 0.05, 0), (20, 0.03, 50)],
)
def test_scores_end_at_what_is_optimal_and_what_is_unacceptable(p99_ms, loss, score):
    found = quality_of_outcome(NEEDED, Conditions({99: p99_ms, 99.9: 250}, 5_000, loss, 4e6))
    assert found.score == pytest.approx(score)


def test_what_a_capture_does_not_show_is_named_and_never_taken_for_good():
    found = quality_of_outcome(NEEDED, Conditions({99: 350, 99.9: 375}, 5_000, None, 3e6))
    # nobody may have wanted 4 Mbit/s: less is no proof, and losses do not show everywhere
    assert found.unknown == ("loss", "throughput")
    assert found.score == pytest.approx(50)


def test_too_few_samples_have_no_score():
    few = Requirement(NEEDED.delays, 1_000, 0.01, 0.05)
    found = quality_of_outcome(few, Conditions({99: 350, 99.9: 375}, 999, 0.02, None))
    assert found.score is None
    assert found.unknown == ("delay",)


def test_grades_are_those_of_the_published_table():
    grades = next(one for one in read_profiles(known_profiles()) if one.name == "delay-under-load").rules
    # dslreports.com/faq/17930: less than 5 ms A+, 30 A, 60 B, 200 C, 400 D, else F
    published = {-3: "A+", 4.9: "A+", 5: "A", 29.9: "A", 30: "B", 60: "C", 199: "C", 200: "D", 400: "F"}
    assert {value: grades.grade(value) for value in published} == published


def test_ratings_have_the_opinions_of_g_107():
    # G.107: default R and its MOS, and Annex B
    assert opinion(93.2) == pytest.approx(4.41, abs=0.005)
    published = {90: 4.34, 80: 4.03, 70: 3.60, 60: 3.10, 50: 2.58}
    assert {one: opinion(one) for one in published} == pytest.approx(published, abs=0.01)
    assert (opinion(-5), opinion(3), opinion(100), opinion(120)) == (1.0, 1.0, 4.5, 4.5)


@pytest.mark.parametrize(
    ("payload_type", "published"),
    # G.113 Appendix I, impairment by percentage of lost packets: measured, so that the formula is near
    [
        (18, {0: 11, 0.5: 13, 1: 15, 1.5: 17, 2: 19, 3: 23, 4: 26, 8: 36, 16: 49}),
        (4, {0: 15, 0.5: 17, 1: 19, 1.5: 22, 2: 24, 3: 27, 4: 32, 8: 41, 16: 55}),
    ],
)
def test_losses_impair_codecs_as_g_113_measured(payload_type, published):
    voice = next(one for one in read_profiles(["voice"])).rules
    codec = voice.codec(payload_type)
    found = {percent: equipment_impairment(codec, percent / 100) for percent in published}
    assert found == pytest.approx(published, abs=1.2)


def test_delays_below_100_ms_take_nothing_away_and_150_ms_hardly_anything():
    assert delay_impairment(99) == delay_impairment(100) == 0
    # G.114: up to 150 ms most applications are not affected, 400 ms are not to be exceeded (R near 70)
    assert delay_impairment(150) < 0.5
    assert rating(Codec(0, "", 0, 4.3, 20), 400, 0) == pytest.approx(70, abs=1.5)


def stream(**fields):
    known = {
        "name": "a",
        "payload_type": 0,
        "vantage": None,
        "sent": 1_000,
        "lost": 0,
        "reported_lost": 20,
        "ahead_ms": 30.0,
        "behind_ms": 10.0,
        "jitter_ms": 1.0,
        "first_ns": 0,
        "last_ns": 10**9,
    }
    (voice,) = read_profiles(["voice"])
    return stream_opinion("voice", voice.rules, StreamFacts(**{**known, **fields}))


def test_a_stream_with_codec_losses_and_delay_has_an_opinion():
    # half of 40 ms, 60 ms of buffer and 20 ms of codec are 100 ms; 95 * 2 / (2 + 25.1) are lost
    found = stream()
    assert found.inputs["rating"] == pytest.approx(93.2 - 7.011, abs=0.001)
    assert found.grade == "satisfied"
    assert found.value == pytest.approx(4.24, abs=0.01)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"payload_type": 111}, "payload type 111"),
        # a capture before the loss would find every call perfect
        ({"reported_lost": None}, "losses beyond the capture"),
        ({"reported_lost": None, "vantage": "sender"}, "losses beyond the capture"),
        ({"ahead_ms": None}, "delay is not known"),
        ({"ahead_ms": None, "behind_ms": 12.0, "vantage": "sender"}, "delay is not known"),
        ({"sent": 0}, "losses beyond the capture"),
    ],
)
def test_a_stream_without_codec_losses_or_delay_has_none(fields, reason):
    found = stream(**fields)
    assert found.value is None
    assert reason in found.reason


def test_one_end_is_enough_if_the_capture_was_there():
    assert stream(vantage="receiver", reported_lost=None, lost=50, ahead_ms=None).inputs["loss"] == 0.05
    assert stream(vantage="sender", behind_ms=None).inputs["rtt_ms"] == 30
