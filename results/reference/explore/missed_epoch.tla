---- MODULE missed_epoch ----
\* Written by: ackproof explore moved --set missed.epoch=kafka
\* Replay: put this file and missed_epoch.cfg beside the files of kafka_data_replication/kraft/v3.5
\* of github.com/Vanlightly/kafka-tlaplus (commit 823615e8) and the modules FiniteSetsExt, SequencesExt,
\* Functions and Folds of TLA+'s community, and run: java -cp tla2tools.jar tlc2.TLC missed_epoch
\* TLC ends with a violated invariant; where it says deadlock, the model has not done what ours does.
\* Broker n is n + 1 here, and so are epochs and offsets. A comment has our step, its actions are below, then
\* the state in our numbers (decided by the controller; brokers with their logs, a bar at the high watermark).
EXTENDS kafka_replication_v3_5

VARIABLE step

Sent(to) == \E m \in messages' \ messages : m.dest = to
Taken(from) == \E m \in messages \ messages' : m.source = from
UnderWay(kind, from, to) == \E m \in messages : m.type = kind /\ m.source = from /\ m.dest = to
Proposed(isr) == \E m \in messages' \ messages : m.isr = isr
Shows(epochs, logs) == \A b \in Brokers :
    /\ epochs[b] \in {0, partition_metadata'[b].leader_epoch}
    /\ LET log == partition_data'[b].log IN [offset \in DOMAIN log |-> log[offset].value] = logs[b]

\* The action that the model lacks: an operator, or a balancer, makes another in-sync replica lead.
PlannedMove(b) ==
    /\ b \in con_partition_metadata.isr \intersect con_unfenced
    /\ b # con_partition_metadata.leader
    /\ LET md == con_partition_metadata
       IN ApplyPartitionChange(md.replicas, b, md.isr, md.leader_epoch + 1,
                               md.partition_epoch + 1, md.adding, md.removing)
    /\ UNCHANGED << con_broker_vars, broker_vars, part_vars, NetworkVars, inv_vars, aux_vars >>

ReplayInit == Init /\ step = 0

ReplayNext ==
    /\ step' = step + 1
    /\ \/ FALSE
       \*  1  a client writes a to 0
       \/ step = 0 /\ WriteRecordToLeader(1) /\ "a" \in inv_sent' /\ Shows(<<1, 1, 1>>, <<<<"a">>, <<>>, <<>>>>)
       \*       now (leader 0, epoch 0, ISR 0 1 2) 0 leads 0: |a; 1 in 0: |; 2 in 0: |
       \*  2  1 > 0: fetch from 0 in epoch 0 arrives
       \/ step = 1 /\ SendFetchRequest(2) /\ Sent(1)
       \/ step = 2 /\ ReceiveFetchRequest(1) /\ Taken(2) /\ Shows(<<1, 1, 1>>, <<<<"a">>, <<>>, <<>>>>)
       \*       now (leader 0, epoch 0, ISR 0 1 2) 0 leads 0: |a; 1 in 0: |; 2 in 0: |
       \*  3  0 > 1: records a, high watermark 0 arrives
       \/ step = 3 /\ ReceiveFetchResponse(2) /\ Taken(1) /\ Shows(<<1, 1, 1>>, <<<<"a">>, <<"a">>, <<>>>>)
       \*       now (leader 0, epoch 0, ISR 0 1 2) 0 leads 0: |a; 1 in 0: |a; 2 in 0: |
       \*  4  1 > 0: fetch from 1 in epoch 0 arrives
       \/ step = 4 /\ ((SendFetchRequest(2) /\ Sent(1)) \/ (Converged(1, 2) /\ UNCHANGED vars))
       \/ step = 5 /\ ((ReceiveFetchRequest(1) /\ Taken(2)) \/ (~UnderWay(FetchRequest, 2, 1) /\ UNCHANGED vars)) /\ Shows(<<1, 1, 1>>, <<<<"a">>, <<"a">>, <<>>>>)
       \*       now (leader 0, epoch 0, ISR 0 1 2) 0 leads 0: |a; 1 in 0: |a; 2 in 0: |
       \*  5  a planned move makes 2 the leader
       \/ step = 6 /\ PlannedMove(3) /\ Shows(<<1, 1, 1>>, <<<<"a">>, <<"a">>, <<>>>>)
       \*       now (leader 2, epoch 1, ISR 0 1 2) 0 leads 0: |a; 1 in 0: |a; 2 in 0: |
       \*  6  controller > 1: decision 2 (leader 2, epoch 1, ISR 0 1 2) arrives
       \/ step = 7 /\ ReceiveMetadataUpdate(2) /\ Len(broker_metadata_log'[2]) = 2 /\ Shows(<<1, 2, 1>>, <<<<"a">>, <<"a">>, <<>>>>)
       \*       now (leader 2, epoch 1, ISR 0 1 2) 0 leads 0: |a; 1 in 1: |a; 2 in 0: |
       \*  7  a planned move makes 0 the leader
       \/ step = 8 /\ PlannedMove(1) /\ Shows(<<1, 2, 1>>, <<<<"a">>, <<"a">>, <<>>>>)
       \*       now (leader 0, epoch 2, ISR 0 1 2) 0 leads 0: |a; 1 in 1: |a; 2 in 0: |
       \*  8  controller > 0: decision 2 (leader 2, epoch 1, ISR 0 1 2) is skipped
       \*       the broker learns it together with the next, and acts on that alone
       \*       now (leader 0, epoch 2, ISR 0 1 2) 0 leads 0: |a; 1 in 1: |a; 2 in 0: |
       \*  9  controller > 2: decision 2 (leader 2, epoch 1, ISR 0 1 2) arrives
       \/ step = 9 /\ ReceiveMetadataUpdate(3) /\ Len(broker_metadata_log'[3]) = 2 /\ Shows(<<1, 2, 2>>, <<<<"a">>, <<"a">>, <<>>>>)
       \*       now (leader 0, epoch 2, ISR 0 1 2) 0 leads 0: |a; 1 in 1: |a; 2 leads 1: |
       \* 10  controller > 0: decision 3 (leader 0, epoch 2, ISR 0 1 2) arrives
       \/ step = 10 /\ ReceiveMetadataUpdate(1) /\ Len(broker_metadata_log'[1]) = 3 /\ Shows(<<3, 2, 2>>, <<<<"a">>, <<"a">>, <<>>>>)
       \*       now (leader 0, epoch 2, ISR 0 1 2) 0 leads 2: |a; 1 in 1: |a; 2 leads 1: |
       \* 11  1 > 2: fetch from 1 in epoch 1 arrives
       \/ step = 11 /\ SendFetchRequest(2) /\ Sent(3)
       \/ step = 12 /\ ReceiveFetchRequest(3) /\ Taken(2) /\ Shows(<<3, 2, 2>>, <<<<"a">>, <<"a">>, <<>>>>)
       \*       now (leader 0, epoch 2, ISR 0 1 2) 0 leads 2: |a; 1 in 1: |a; 2 leads 1: |
       \* 12  controller > 2: decision 3 (leader 0, epoch 2, ISR 0 1 2) arrives
       \/ step = 13 /\ ReceiveMetadataUpdate(3) /\ Len(broker_metadata_log'[3]) = 3 /\ Shows(<<3, 2, 3>>, <<<<"a">>, <<"a">>, <<>>>>)
       \*       now (leader 0, epoch 2, ISR 0 1 2) 0 leads 2: |a; 1 in 1: |a; 2 in 2: |
       \* 13  2 > 0: fetch from 0 in epoch 2 arrives
       \*       no action of the model: without records of its last epoch the follower does not ask about it
       \*       now (leader 0, epoch 2, ISR 0 1 2) 0 leads 2: |a; 1 in 1: |a; 2 in 2: |
       \* 14  0 > 2: truncate to the end of epoch 0 at 1 arrives
       \*       no action of the model: without records of its last epoch the follower does not ask about it
       \*       now (leader 0, epoch 2, ISR 0 1 2) 0 leads 2: |a; 1 in 1: |a; 2 in 2: |
       \* 15  2 > 0: fetch from 0 in epoch 2 arrives
       \/ step = 14 /\ SendFetchRequest(3) /\ Sent(1)
       \/ step = 15 /\ ReceiveFetchRequest(1) /\ Taken(3) /\ Shows(<<3, 2, 3>>, <<<<"a">>, <<"a">>, <<>>>>)
       \*       now (leader 0, epoch 2, ISR 0 1 2) 0 leads 2: |a; 1 in 1: |a; 2 in 2: |
       \* 16  0 > 2: records a, high watermark 0 arrives
       \/ step = 16 /\ ReceiveFetchResponse(3) /\ Taken(1) /\ Shows(<<3, 2, 3>>, <<<<"a">>, <<"a">>, <<"a">>>>)
       \*       now (leader 0, epoch 2, ISR 0 1 2) 0 leads 2: |a; 1 in 1: |a; 2 in 2: |a
       \* 17  2 > 0: fetch from 1 in epoch 2 arrives
       \/ step = 17 /\ ((SendFetchRequest(3) /\ Sent(1)) \/ (Converged(1, 3) /\ UNCHANGED vars))
       \/ step = 18 /\ ((ReceiveFetchRequest(1) /\ Taken(3)) \/ (~UnderWay(FetchRequest, 3, 1) /\ UNCHANGED vars)) /\ Shows(<<3, 2, 3>>, <<<<"a">>, <<"a">>, <<"a">>>>)
       \*       now (leader 0, epoch 2, ISR 0 1 2) 0 leads 2: a|; 1 in 1: |a; 2 in 2: |a
       \* 18  2 > 1: truncate to the end of epoch 0 at 0 arrives
       \/ step = 19 /\ ReceiveFetchResponse(2) /\ Taken(3) /\ Shows(<<3, 2, 3>>, <<<<"a">>, <<>>, <<"a">>>>)
       \*       now (leader 0, epoch 2, ISR 0 1 2) 0 leads 2: a|; 1 in 1: |; 2 in 2: |a
====
