package kafka.coordinator.transaction

import java.util
import java.util.Properties
import kafka.server.KafkaConfig
import org.apache.kafka.clients.NetworkClient
import org.apache.kafka.common.metadata.{PartitionRecord, TopicRecord}
import org.apache.kafka.common.record.internal.RecordBatch
import org.apache.kafka.common.requests.TransactionResult
import org.apache.kafka.common.utils.Time
import org.apache.kafka.common.{TopicPartition, Uuid}
import org.apache.kafka.coordinator.transaction.{TransactionMetadata, TransactionState}
import org.apache.kafka.image.{MetadataDelta, MetadataImage, MetadataProvenance}
import org.apache.kafka.metadata.KRaftMetadataCache
import org.apache.kafka.server.common.{KRaftVersion, TransactionVersion}
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test
import org.mockito.ArgumentMatchers.any
import org.mockito.Mockito.{mock, never, verify, when}

/** For TransactionMarkerChannelManagerTest, which mocks the metadata cache: the same with the cache of a broker. */
class LeaderlessPartitionTest {

  @Test
  def shouldKeepMarkersOfPartitionThatHasNoLeader(): Unit = {
    val topicId = Uuid.randomUuid()
    val delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build()
    delta.replay(new TopicRecord().setName("topic1").setTopicId(topicId))
    delta.replay(
      new PartitionRecord()
        .setTopicId(topicId)
        .setPartitionId(0)
        .setReplicas(util.List.of(1, 2, 3))
        .setIsr(util.List.of(1))
        .setLeader(-1)
    )
    val cache = new KRaftMetadataCache(1, () => KRaftVersion.LATEST_PRODUCTION)
    cache.setImage(delta.apply(MetadataProvenance.EMPTY))

    val partition = new TopicPartition("topic1", 0)
    val transaction = new TransactionMetadata("txnId1", 0, 0, RecordBatch.NO_PRODUCER_ID, 0, RecordBatch.NO_PRODUCER_EPOCH,
      0, TransactionState.PREPARE_COMMIT, new util.HashSet(util.Set.of(partition)), 0, 0, TransactionVersion.TV_2)
    val states = mock(classOf[TransactionStateManager])
    when(states.partitionFor("txnId1")).thenReturn(0)
    when(states.getTransactionState("txnId1")).thenReturn(Right(Some(CoordinatorEpochAndTxnMetadata(0, transaction))))
    val manager =
      new TransactionMarkerChannelManager(config, cache, mock(classOf[NetworkClient]), states, Time.SYSTEM)

    manager.addTxnMarkersToSend(0, TransactionResult.COMMIT, transaction, transaction.prepareComplete(Time.SYSTEM.milliseconds))

    assertEquals(util.Set.of(partition), transaction.topicPartitions, "the partition belongs to the transaction")
    assertEquals(1, manager.queueForUnknownBroker.totalNumMarkers(0), "its marker waits for a leader")
    verify(states, never()).appendTransactionToLog(any(), any(), any(), any(), any(), any())
  }

  private def config: KafkaConfig = {
    val properties = new Properties()
    Seq("process.roles" -> "broker", "node.id" -> "1", "controller.listener.names" -> "CONTROLLER",
      "controller.quorum.voters" -> "2@localhost:9093", "listeners" -> "PLAINTEXT://localhost:9092",
      "log.dirs" -> System.getProperty("java.io.tmpdir"))
      .foreach { case (name, value) => properties.put(name, value) }
    KafkaConfig.fromProps(properties)
  }
}
