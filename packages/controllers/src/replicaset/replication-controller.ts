import type { ControllerDefinition } from '@keelson/controller-kit';
import { labelSetSelector, nothingSelector } from '@keelson/core';
import { ReplicationController } from '@keelson/kinds';
import { replicaController } from './replica-controller.ts';

/** Keeps the pods of replication controllers, as that of replica sets does. Their selectors are sets of labels. */
export const replicationController: ControllerDefinition<ReplicationController> =
  replicaController<ReplicationController>({
    name: 'replication-controller',
    kind: ReplicationController,
    selectorOf: ({ spec }) => (spec.selector === undefined ? nothingSelector : labelSetSelector(spec.selector)),
    countsTerminating: false,
  });
