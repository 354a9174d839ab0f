import { type ControllerDefinition, controllerOf } from '@keelson/controller-kit';
import { labelSetSelector, nothingSelector } from '@keelson/core';
import { ReplicaSet, ReplicationController } from '@keelson/kinds';
import { selectorOf } from '../workload/selector.ts';
import { replicaController } from './replica-controller.ts';

/** Keeps the pods of replica sets. */
export const replicaSetController: ControllerDefinition<ReplicaSet> = replicaController<ReplicaSet>({
  name: 'replicaset-controller',
  kind: ReplicaSet,
  selectorOf,
  siblings: (set, run) => {
    const owner = controllerOf(set);
    if (owner === undefined) return [set];
    return run.read(ReplicaSet).controlledBy({ metadata: { uid: owner.uid } });
  },
  countsTerminating: true,
});

/** Keeps the number of pods of replication controllers like that of replica sets. Their selector is a map of labels. */
export const replicationController: ControllerDefinition<ReplicationController> =
  replicaController<ReplicationController>({
    name: 'replicationcontroller-controller',
    eventSource: 'replication-controller',
    kind: ReplicationController,
    selectorOf: ({ spec }) => (spec.selector === undefined ? nothingSelector : labelSetSelector(spec.selector)),
    countsTerminating: false,
  });
