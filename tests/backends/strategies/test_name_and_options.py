"""Texts of the form NAME:key=value,... are read in one way, whatever they choose."""

import pytest

from backends.strategies.name_and_options import (
    count,
    name_of,
    number,
    one_of,
    options_of,
    typed,
    whole_number,
    yes_or_no,
)


def test_a_name_stands_before_its_options():
    assert name_of("fruit", "apple", ["apple", "pear"]) == "apple"
    assert name_of("fruit", "pear:size=3", ["apple", "pear"]) == "pear"


def test_an_unknown_name_is_answered_with_the_nearest_and_all():
    with pytest.raises(ValueError, match="unknown fruit 'appel'; did you mean apple\\? known: apple, pear"):
        one_of("fruit", "appel", ["apple", "pear"])
    with pytest.raises(ValueError, match="unknown fruit 'xyz'; known: apple, pear"):
        one_of("fruit", "xyz", ["apple", "pear"])


def test_options_are_read_in_their_order():
    assert options_of("name") == {}
    assert list(options_of("name:b=2,a=1").items()) == [("b", "2"), ("a", "1")]


def test_an_option_may_have_options_of_its_own():
    found = options_of("name:of=other:x=1,y=2,size=3", ["of", "size"])
    assert found == {"of": "other:x=1,y=2", "size": "3"}


@pytest.mark.parametrize(
    ("text", "keys", "message"),
    [
        ("name:", None, "name:: '' is not of the form key=value"),
        ("name:size", None, "'size' is not of the form key=value"),
        ("name:size=", None, "'size=' is not of the form key=value"),
        ("name:size=1,size=2", None, "size is given twice"),
        ("name:weight=1", ["size"], "'weight=1' is not key=value with a key of size"),
        ("name:size=1,weight=1", ["size"], "'weight=1' is not key=value with a key of size"),
        ("name:size=1", [], "with a key of none"),
    ],
)
def test_what_is_no_option_is_named(text, keys, message):
    with pytest.raises(ValueError) as refused:
        options_of(text, keys)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("reader", "text", "message"),
    [
        (whole_number, "1.5", "name: key is a whole number, not '1.5'"),
        (count, "-1", "name: key is a whole number from 0 on, not '-1'"),
        (number, "much", "name: key is a number, not 'much'"),
        (yes_or_no, "1", "name: key is yes or no, not '1'"),
    ],
)
def test_a_value_that_cannot_be_read_is_named_with_its_key(reader, text, message):
    with pytest.raises(ValueError) as refused:
        typed("name", {"key": text}, {"key": reader})
    assert str(refused.value) == message
