"""What one broker says of a group, asked on a connection of its own as a client that is no member asks."""

import socket

from kafka import errors
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.parser import KafkaProtocol

VERSION = 7  # the first with require_stable (KIP-447)


class Asked:
    def __init__(self, broker):
        self.socket, self.protocol = socket.create_connection(("127.0.0.1", 9090 + broker), 60), KafkaProtocol()

    def ask(self, request):
        self.protocol.send_request(request)
        self.socket.sendall(self.protocol.send_bytes())
        while not (answers := self.protocol.receive_bytes(self.socket.recv(65536))):
            pass
        return answers[0][1]

    def committed(self, group, topic, stable=False):
        """The offset of partition 0, or the name of an error."""
        asked = OffsetFetchRequest.OffsetFetchRequestTopic(version=VERSION, name=topic, partition_indexes=[0])
        answer = self.ask(OffsetFetchRequest[VERSION](group_id=group, topics=[asked], require_stable=stable))
        (partition,) = answer.topics[0].partitions if answer.topics else (answer,)
        code = answer.error_code or partition.error_code
        return errors.for_code(code).__name__ if code else partition.committed_offset

    def commit(self, group, topic, offset):
        """Commit an offset of partition 0, and return the name of the error, or NoError."""
        kind = OffsetCommitRequest.OffsetCommitRequestTopic
        partition = kind.OffsetCommitRequestPartition(
            version=VERSION,
            partition_index=0,
            committed_offset=offset,
            committed_leader_epoch=-1,
            committed_metadata="",
        )
        request = OffsetCommitRequest[VERSION](
            group_id=group,
            generation_id_or_member_epoch=-1,
            member_id="",
            group_instance_id=None,
            topics=[kind(version=VERSION, name=topic, partitions=[partition])],
        )
        return errors.for_code(self.ask(request).topics[0].partitions[0].error_code).__name__
