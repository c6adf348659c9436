"""A plan with the way into a cluster of others; the password is never in it, nor in any answer to it."""

import pytest

from harness.ground.errors import PlanError
from harness.plan import OPEN, Security, parse_plan

SASL = 'mechanism = "PLAIN"\nusername = "alice"'
SCRAM = f'protocol = "SASL_SSL"\nca = "~/ca.pem"\n{SASL.replace("PLAIN", "SCRAM-SHA-512")}'


def plan(security: str, host: str = 'host = "existing"\nbootstrap = ["kafka-1.example:9093"]') -> str:
    return f'families = ["move"]\n[worlds.kafka]\n{host}\n[worlds.kafka.security]\n{security}\n'


def security_of(text: str) -> Security:
    (run,) = parse_plan(text, "p.toml").runs()
    return run.world.security


def test_every_run_knows_the_way_in():
    assert security_of(plan(f'{SCRAM}\npassword_env = "KAFKA_PASSWORD"')) == Security(
        protocol="SASL_SSL",
        ca="~/ca.pem",
        mechanism="SCRAM-SHA-512",
        username="alice",
        password_env="KAFKA_PASSWORD",  # noqa: S106 - a name
    )
    mutual = 'protocol = "SSL"\ncertificate = "/k/me.pem"\nkey = "/k/me.key"'
    assert security_of(plan(mutual)) == Security(protocol="SSL", certificate="/k/me.pem", key="/k/me.key")


def test_without_a_word_nothing_is_demanded():
    assert security_of(plan("")) == OPEN


@pytest.mark.parametrize(
    ("security", "sentence"),
    [
        ('protocol = "TLS"', 'security.protocol: takes one of "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", not'),
        ('protocoll = "SSL"', 'unknown key "protocoll"; did you mean "protocol"?'),
        ('truststore = "/k.jks"', 'unknown key "truststore"; there are protocol, ca, certificate, key, mechanism,'),
        ('sasl.mechanism = "PLAIN"', 'unknown key "sasl"; there are protocol, ca,'),
        ('protocol = "SSL"\nca = "ca.pem"', "security.ca: takes an absolute path"),
        ('protocol = "SSL"\nca = ""', "security.ca: takes a string that is not empty"),
        ('ca = "/k/ca.pem"', 'security.ca: this is for TLS: write protocol = "SSL" or "SASL_SSL"'),
        (f'protocol = "SASL_PLAINTEXT"\nca = "/c"\n{SASL}', "security.ca: this is for TLS"),
        ('protocol = "SSL"\nkey = "/k/me.key"', "security.key: a private key is for a client's certificate"),
        (f'protocol = "SSL"\n{SASL}', "security.mechanism: this is for SASL"),
        ('password_env = "P"', "security.password_env: this is for SASL"),
        ('protocol = "SASL_SSL"\npassword_env = "P"', 'protocol = "SASL_SSL" needs mechanism and username'),
        ('protocol = "SASL_SSL"\nmechanism = "PLAIN"', "needs username"),
        (f'protocol = "SASL_SSL"\n{SASL}', "needs password_env or password_file; write one of the two"),
        (
            f'{SCRAM}\npassword_env = "P"\npassword_file = "/p"',
            "needs password_env or password_file; write one of the two",
        ),
        (f'protocol = "SASL_SSL"\n{SASL.replace("PLAIN", "GSSAPI")}', 'takes one of "PLAIN", "SCRAM-SHA-256"'),
        (
            SCRAM.replace("alice", "al\\u0000ice") + '\npassword_env = "P"',
            "security.username: takes the name of a user",
        ),
        (f'{SCRAM.replace("alice", "")}\npassword_env = "P"', "security.username: takes a string that is not empty"),
    ],
)
def test_what_does_not_go_together_gets_its_sentence(security, sentence):
    with pytest.raises(PlanError) as caught:
        parse_plan(plan(security), "p.toml")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        'password = "hunter-2"',
        'password_env = "hunter-2"',
        'password_file = "hunter-2"',
        'password_env = ["hunter-2"]',
        "password_file = { is = 'hunter-2' }",
    ],
)
def test_a_password_in_the_plan_is_refused_and_not_repeated(line):
    with pytest.raises(PlanError, match="password") as caught:
        parse_plan(plan(f"{SCRAM}\n{line}"), "p.toml")
    assert "hunter" not in str(caught.value)


@pytest.mark.parametrize("host", ["", 'host = "namespaces"'])
def test_clusters_of_the_harness_demand_nothing(host):
    with pytest.raises(PlanError, match=r'worlds\.kafka\.security: TLS and SASL are for host = "existing"'):
        parse_plan(plan('protocol = "SSL"', host), "p.toml")
