"""Makes clients of the settings of one program: what each name and each value means, and what was not understood."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from harness.assess.client_defaults import defaults_of, has, numbers_of
from harness.assess.client_settings import ALIASES, refused, unknown_defaults
from harness.assess.client_values import NotAValueError, value_of
from harness.assess.configuration import OF_CLIENTS, Client, NotUnderstood
from harness.assess.frameworks import Framework, NamedSetting, framework_of
from harness.assess.near_names import DECISIVE_OF, inside, near
from harness.assess.own_topics import factors_of
from harness.assess.setting_names import Kind, is_known, names_of_client, names_of_kafka, only_of_librdkafka, with_dots
from harness.assess.written_settings import Program, Written
from harness.ground.known_defects import Library

#: The settings without which a client is not known, where another file has them, or they were cut off.
_NEEDED: Final[Mapping[Kind, tuple[str, ...]]] = {
    "producer": ("acks", "enable.idempotence", "max.in.flight.requests.per.connection", "retries"),
    "consumer": ("auto.offset.reset", "enable.auto.commit"),
}
_TEXT_MAX: Final = 100
#: Kafka's own client says from here on that it is idempotent by default.
_SAID_SINCE: Final = (3, 0, 0)


class Asked(NamedTuple):
    """The question about a file: its clients of a kind, of a library and release, where the user named these."""

    kind: Kind
    library: Library | None = None
    version: str = ""


class _Read(NamedTuple):
    """A setting of a client as it was read: its place in the order of names that count, and what is written."""

    setting: str
    reading: NamedSetting
    written: Written


class _Names(NamedTuple):
    """The meanings of the names of a program's settings."""

    read: Sequence[_Read]
    strange: Sequence[str]
    not_understood: Sequence[NotUnderstood]


def clients_of(group: Program, file: str, asked: Asked) -> list[Client]:
    """The clients of the kind that is asked for which a group's settings make; none where they are of no client."""
    values = {each.name: each.value or "" for each in group.settings}
    framework = framework_of(values)
    names = _names_of(group, framework, asked)
    library = asked.library or _told(names.read, framework, asked.kind)
    readable = any(isinstance(framework.read(each), NamedSetting) for each in values)
    if not framework.title and not readable and not names.not_understood:
        return []  # whatever it is, it has no client
    return _Reader(group, file, asked, framework, library).clients(names, values)


def _names_of(group: Program, framework: Framework, asked: Asked) -> _Names:
    read: list[_Read] = []
    strange: list[str] = []
    not_understood: list[NotUnderstood] = []
    beginning, sentence = framework.unread
    for each in group.settings:
        meaning = framework.read(each.name)
        if isinstance(meaning, NamedSetting):
            if meaning.kind in (None, asked.kind):
                read.append(_Read(meaning.setting, meaning, each))
        elif meaning is None:
            decisive = near(each.name, asked.kind)
            if beginning and each.name.lower().startswith(beginning):
                if decisive or not any(own.why == sentence for own in not_understood):
                    not_understood.append(_unclear(each, sentence, decisive))
            elif decisive:
                not_understood.append(_unclear(each, _why_near(decisive, framework), decisive))
            if not framework.title:
                strange.append(each.name)
        if not isinstance(meaning, NamedSetting) or meaning.setting not in OF_CLIENTS:
            not_understood += _inside(each, asked.kind, alone=not isinstance(meaning, NamedSetting))
    return _Names(read, strange, not_understood)


def _inside(written: Written, kind: Kind, *, alone: bool) -> Iterator[NotUnderstood]:
    """The doubt about a decisive setting that another's value has; ``alone``: its name alone is enough."""
    value = written.value or ""
    if decisive := inside(value, kind) or (value if alone and value in DECISIVE_OF[kind] else ""):
        why = f"{decisive} is set inside the value of another setting, which is not read; write it as a setting"
        yield NotUnderstood(written.where, written.name, why, decisive)


def _why_near(decisive: str, framework: Framework) -> str:
    whose = f"to {framework.title}" if framework.title else "of a client"
    return f"this name is not known {whose}, and may mean {decisive}; write {decisive} if it does, or leave it out"


def _unclear(written: Written, why: str, name: str) -> NotUnderstood:
    value = "" if written.value is None else f"={written.value[:_TEXT_MAX]}"
    return NotUnderstood(where=written.where, text=f"{written.name}{value if name else ''}", why=why, name=name)


def _told(read: Sequence[_Read], framework: Framework, kind: Kind) -> Library:
    """The library that the names of settings tell."""
    if not framework.title:
        if any(only_of_librdkafka(with_dots(each.setting), kind) for each in read):
            return "librdkafka"
        if any(_underscored(each.setting, kind) for each in read):
            return "kafka-python"
    return "java"


def _underscored(name: str, kind: Kind) -> bool:
    """True if a setting is written as kafka-python does."""
    return "_" in name and "." not in name and with_dots(name) in names_of_client(kind, "kafka-python")


class _Reader:
    """Makes clients of what was read of one group."""

    def __init__(self, group: Program, file: str, asked: Asked, framework: Framework, library: Library) -> None:
        self._group = group
        self._file = file
        self._kind = asked.kind
        self._framework = framework
        self._library = library
        self._version = asked.version or (group.version if library == "java" else "")

    def clients(self, names: _Names, values: Mapping[str, str]) -> list[Client]:
        """One client, or one of each name that the framework gives to several."""
        of_each = sorted({each.reading.of for each in names.read if each.reading.of}) or [""]
        return [self._client(of, names, values) for of in of_each]

    def _client(self, of: str, names: _Names, values: Mapping[str, str]) -> Client:
        strange = list(names.strange)
        unclear = list(names.not_understood)
        by_name: dict[str, list[_Read]] = {}
        for each in names.read:
            if each.reading.of in ("", of) and (name := self._name_of(each, strange, unclear)):
                by_name.setdefault(name, []).append(each)
        given: dict[str, str] = {}
        for name, read in by_name.items():
            value, wrong = self._value_of(name, read)
            unclear += wrong
            if value is not None:
                given[name] = value
        unclear += self._doubted(given, by_name)
        version = numbers_of(self._version)
        base = self._framework.base(self._kind, values, version)
        settings = {**base, **given, **self._framework.fixed(self._kind, values)}
        label = ", ".join(word for word in (self._group.label, of) if word)
        client = Client(
            name=f"{self._file} ({label})" if label else self._file,
            library=self._library,
            version=self._version,
            settings=settings,
            strange=tuple(sorted(set(strange))),
        )
        unclear += self._missing(by_name)
        unclear += unknown_defaults(client, set(DECISIVE_OF[self._kind]) - by_name.keys())
        return Client(
            name=client.name,
            library=client.library,
            version=client.version,
            settings=settings,
            strange=client.strange,
            topics=factors_of(values) if self._framework.title else {},
            not_understood=tuple(dict.fromkeys(unclear)),
        )

    def _name_of(self, each: _Read, strange: list[str], unclear: list[NotUnderstood]) -> str:
        """Kafka's name of a setting that decides, if such a client has it; what is to say of others is added."""
        dotted = with_dots(each.setting)
        plain = not self._framework.title
        name = ALIASES.get(dotted, dotted)
        if not is_known(dotted, self._kind, self._library):
            if plain:
                strange.append(each.written.name)
            unclear += self._foreign(dotted, name, each.written)
            return ""
        if name not in OF_CLIENTS:
            return ""
        if dotted != each.setting and self._library != "kafka-python":
            why = f"{self._library} writes this name with dots, and does not know it so; write {dotted}"
            unclear.append(_unclear(each.written, why, name))
            return ""
        return self._if_there(name, each, strange, unclear)

    def _foreign(self, dotted: str, name: str, written: Written) -> Iterator[NotUnderstood]:
        """The doubt about a name that this library does not have: it may mean a setting that decides."""
        if is_known(dotted, self._kind):
            if name in DECISIVE_OF[self._kind]:
                means = f"{self._library} has no such setting, and another library means {name} by it"
                yield _unclear(written, f"{means}; write {name}, or state the library with --client", name)
        elif not any(is_known(dotted, kind) for kind in DECISIVE_OF) and (own := near(dotted, self._kind)):
            yield _unclear(written, _why_near(own, self._framework), own)

    def _if_there(self, name: str, each: _Read, strange: list[str], unclear: list[NotUnderstood]) -> str:
        """The name, if the client's release has such a setting. Kafka's own client passes over one that it lacks."""
        version = numbers_of(self._version)
        if self._library == "java":
            if version is not None and name not in names_of_kafka(self._kind, version):
                strange.append(each.written.name)
                return ""
            return name
        present = has(self._library, version, name)
        if present is True:
            return name
        which = f"{self._library} {self._version}"
        why = f"it is not known whether {which} has this setting" if present is None else f"{which} lacks this setting"
        unclear.append(_unclear(each.written, f"{why}, and a release without it refuses to start", name))
        return ""

    def _value_of(self, name: str, read: Sequence[_Read]) -> tuple[str | None, list[NotUnderstood]]:
        """The value that counts of all that were written for a setting; and why it is not known, if it is not."""
        ordered = [each for _, each in sorted(enumerate(read), key=lambda pair: (pair[1].reading.rank, pair[0]))]
        certain = [each for each in ordered if not each.written.why]
        if not certain:
            return None, [_unclear(ordered[-1].written, ordered[-1].written.why, name)]
        last = certain[-1]
        try:
            value = self._value(name, last.written)
        except NotAValueError as error:
            return None, [_unclear(last.written, str(error), name)]
        for each in ordered:
            mixed = not self._framework.title and each.reading.rank != last.reading.rank
            if (each.written.why or mixed) and not self._says(name, each.written, value):
                other = f"{last.written.where} has {last.written.name}={last.written.value}: which counts is not known"
                return None, [_unclear(each.written, each.written.why or other, name)]
        if self._group.whole and (name, value) == ("enable.idempotence", "true") and self._unlike_its_log():
            why = "producers of this release log it also where it is off (KAFKA-13598)"
            return None, [_unclear(last.written, why, name)]
        return value, []

    def _value(self, name: str, written: Written) -> str | None:
        """The value of what is written; None for "not set". Raises NotAValueError."""
        text = self._text(name, written)
        return None if text is None else value_of(name, text, self._library)

    def _says(self, name: str, written: Written, value: str | None) -> bool:
        try:
            return self._value(name, written) == value
        except NotAValueError:
            return False

    def _text(self, name: str, written: Written) -> str | None:
        if self._framework.title != "Spring":
            return written.value
        value = written.value or ""  # to Spring, null is an empty text
        return value.lower().replace("-", "_") if name == "isolation.level" else value

    def _doubted(self, given: dict[str, str], read: Mapping[str, Sequence[_Read]]) -> list[NotUnderstood]:
        """The doubt about idempotence that a log shows without its release; the setting is taken away."""
        if not self._group.whole or self._version or given.get("enable.idempotence") != "true":
            return []
        alone = Client(name="", library=self._library, settings=given)
        if self._group.unsure:
            why = f"the log says {self._group.unsure}, which is not the number of one release of Kafka"
        elif refused(alone):
            why = "the other settings exclude it"
        else:
            return []
        del given["enable.idempotence"]
        why += "; 3.0.0 and 3.1.0 log it also where it is off (KAFKA-13598): write the release, --client java:VERSION"
        return [_unclear(read["enable.idempotence"][-1].written, why, "enable.idempotence")]

    def _unlike_its_log(self) -> bool:
        version = numbers_of(self._version)
        return (
            self._library == "java"
            and version is not None
            and version >= _SAID_SINCE
            and defaults_of("java", version)["enable.idempotence"] == "false"
        )

    def _missing(self, given: Mapping[str, object]) -> Iterator[NotUnderstood]:
        """The settings that decide and are missing, where no default may be taken."""
        version = numbers_of(self._version)
        for name in _NEEDED[self._kind]:
            if name in given:
                continue
            if self._framework.missing:
                yield NotUnderstood(self._file, name, self._framework.missing.format(name=name), name)
            elif self._group.elsewhere:
                why = f"{self._group.elsewhere} may set it, and is in another text; write it here, too"
                yield NotUnderstood(self._file, name, why, name)
            elif self._group.whole and name in names_of_kafka(self._kind, version):
                yield NotUnderstood(self._group.settings[0].where, name, "the log has no line of it: it was cut", name)
