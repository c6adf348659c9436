"""Real clients behind the contract of ``workloads.client``, each library in a module of its own.

Each name is loaded when it is first asked for, as at the door of the checkers: a run in virtual time asks for the
settings of a client only, and need not wait for libraries that talk to brokers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.worlds.clients.configuration import client_settings
    from harness.worlds.clients.confluent import CONFLUENT
    from harness.worlds.clients.credentials import at_home, require_credentials, without_secrets
    from harness.worlds.clients.direct import BatchSequence, RealDirectClient
    from harness.worlds.clients.direct_connection import DirectConnection
    from harness.worlds.clients.java.configuration import for_java
    from harness.worlds.clients.java.library import compiler_jars, java_library, java_process, words_of_bridge
    from harness.worlds.clients.kafka_python import KAFKA_PYTHON, make, named, producer_configuration
    from harness.worlds.clients.libraries import CLIENTS, JAVA
    from harness.worlds.clients.listed_groups import EMPTY, group_state
    from harness.worlds.clients.membership import add_voter, remove_voter, unregister_broker
    from harness.worlds.clients.programs.client import StartedProgram, program_library
    from harness.worlds.clients.programs.process import ClientProcess
    from harness.worlds.clients.real_clients import ClientLibrary, RealClients
    from harness.worlds.clients.told_state import ToldGroup, told_group, told_stable_end, told_transaction

__all__ = [
    "CLIENTS",
    "CONFLUENT",
    "EMPTY",
    "JAVA",
    "KAFKA_PYTHON",
    "BatchSequence",
    "ClientLibrary",
    "ClientProcess",
    "DirectConnection",
    "RealClients",
    "RealDirectClient",
    "StartedProgram",
    "ToldGroup",
    "add_voter",
    "at_home",
    "client_settings",
    "compiler_jars",
    "for_java",
    "group_state",
    "java_library",
    "java_process",
    "make",
    "named",
    "producer_configuration",
    "program_library",
    "remove_voter",
    "require_credentials",
    "told_group",
    "told_stable_end",
    "told_transaction",
    "unregister_broker",
    "without_secrets",
    "words_of_bridge",
]

#: The names of each module.
_NAMES = {
    "real_clients": "ClientLibrary RealClients",
    "configuration": "client_settings",
    "confluent": "CONFLUENT",
    "credentials": "at_home require_credentials without_secrets",
    "direct": "BatchSequence RealDirectClient",
    "direct_connection": "DirectConnection",
    "listed_groups": "EMPTY group_state",
    "java.configuration": "for_java",
    "java.library": "compiler_jars java_library java_process words_of_bridge",
    "kafka_python": "KAFKA_PYTHON make named producer_configuration",
    "libraries": "CLIENTS JAVA",
    "membership": "add_voter remove_voter unregister_broker",
    "programs.client": "StartedProgram program_library",
    "programs.process": "ClientProcess",
    "told_state": "ToldGroup told_group told_stable_end told_transaction",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load a name when it is first asked for."""
        for module, names in _NAMES.items():
            if name in names.split():
                return getattr(import_module(f"{__name__}.{module}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
