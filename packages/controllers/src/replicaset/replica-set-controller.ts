import { type ControllerDefinition, controllerOf } from '@keelson/controller-kit';
import { ReplicaSet } from '@keelson/kinds';
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
